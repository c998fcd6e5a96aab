#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void transformer_lens_attention(Builder& b) {
  b.within("attn.", [&] {
    b.buffer("rotary_sin");
    b.buffer("rotary_cos");
    const bool grouped = b.has("_W_K");
    b.attention_of_stacks("W_Q", grouped ? "_W_K" : "W_K", grouped ? "_W_V" : "W_V");
    b.score_of_hidden("IGNORE");
    if (!b.model_type().empty()) b.mask_of_heads("mask");
  });
}

void mlp(Builder& b) {
  b.reads("mlp gate", "mlp.W_gate", 0, Need::optional);
  const std::uint64_t inner = b.reads("mlp in", "mlp.W_in");
  if (b.has("mlp.ln.")) {
    b.norm_inside("mlp.ln", "mlp inner", inner);
    b.reads("mlp out", "mlp.W_out");
  }
  b.writes("mlp out", "mlp.W_out", inner);
}

/// The family that the configuration's model_type names; null without one.
const Architecture* family_of(const Builder& b) {
  const std::vector<const Architecture*> all = all_architectures();
  const auto found = std::find_if(all.begin(), all.end(), [type = b.model_type()](const Architecture* one) {
    return !type.empty() && is_in_transformer_lens(*one, type);
  });
  return found == all.end() ? nullptr : *found;
}

// Without a configuration the positions tell the family: a table is that of GPT-2, rotations those of Llama.
// GPT-Neo has the tensors of GPT-2, but scores without a factor and with windows, which its masks show.
// Models without MLPs may add positions to queries and keys only.
LensBlocks assumed_settings(Builder& b, bool is_folded, bool rotates) {
  const bool centred = is_folded ? !rotates : b.has("blocks.0.ln1.b");
  b.norms({.kind = centred ? NormKind::layer : NormKind::rms, .placement = Placement::pre, .eps = 1e-5});
  b.decoder({.activation = rotates ? "silu" : "gelu_new"});
  if (rotates) b.rotary({});
  b.note("scores divided by the root of the head width are assumed: TransformerLens stores no configuration");
  bool causal = true;
  b.each_part("blocks.{}.", [&] { causal = b.causal_mask("attn.mask") && causal; });
  if (!causal) b.scores_not_modelled("the scale of scores, which no mask of the file confirms");
  if (!b.has("blocks.0.mlp.")) b.scores_not_modelled("positions, which the file does not state");
  if (rotates) b.scores_not_modelled("the frequencies of rotations, which no configuration states");
  return LensBlocks::sequential;
}

void block(Builder& b, LensBlocks blocks, bool is_folded) {
  b.norm("ln1", "attention input");
  transformer_lens_attention(b);
  const bool has_mlp = b.has("mlp.");
  const bool is_parallel = blocks == LensBlocks::parallel;
  // Where both branches read one norm, ln2 is a copy of ln1.
  if (has_mlp && is_parallel && (is_folded || b.has("ln2."))) b.norm_beside("ln2", "mlp input");
  b.within("attn.", [&] { b.writes_stack("attention out", "W_O"); });
  if (has_mlp && !is_parallel) b.norm("ln2", "mlp input");
  if (has_mlp) mlp(b);
}

// Gains that are folded into their readers leave no tensor.
void transformer_lens_forward(Builder& b) {
  const bool is_folded = !b.has("blocks.0.ln1.");
  const bool rotates = b.has("blocks.0.attn.rotary_sin");
  const Architecture* const family = family_of(b);
  const LensBlocks blocks =
      family == nullptr ? assumed_settings(b, is_folded, rotates) : family->in_transformer_lens(b);
  // What the family's code does not use.
  for (const std::string_view field : family == nullptr ? std::vector<std::string_view>() : family->harmless)
    b.ignores({field.data()});
  b.tables_as_used();
  b.layout(Layout::in_out);
  const auto describe = [&] {
    b.embedding("token embedding", "embed.W_E");
    b.embedding("position embedding", "pos_embed.W_pos",
                rotates || family != nullptr ? Need::optional : Need::required);
    b.each_layer("blocks.{}.", [&] { block(b, blocks, is_folded); });
    b.norm("ln_final", "final");
    b.stores_head();
    b.unembedding({"unembed.W_U"}, false, true, "unembed.b_U");
  };
  is_folded ? b.without_parameters(describe) : b.gains_as_stored(describe);
}

}  // namespace

extern const Architecture transformer_lens = {
    .name = "transformer_lens",
    .title = "GPT-2 or another model in the names of TransformerLens",
    .model_types = {"gpt2", "llama", "mistral", "qwen2", "gemma", "phi", "gpt_neox", "gptj", "gpt_neo", "opt",
                    "stablelm"},
    .signature = {"blocks.{}.attn.W_Q", "embed.W_E", "unembed.W_U"},
    .without = {"embed.pos_embed.W_pos"},
    .describe = transformer_lens_forward,
};

}  // namespace normscope::models::architectures

namespace normscope::models {

bool is_in_transformer_lens(const Architecture& architecture, std::string_view model_type) {
  const auto lists = [&](const Architecture& one) {
    return std::find(one.model_types.begin(), one.model_types.end(), model_type) != one.model_types.end();
  };
  return architecture.in_transformer_lens != nullptr &&
         (model_type.empty() || (lists(architecture) && lists(architectures::transformer_lens)));
}

}  // namespace normscope::models
