#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void transformer_lens_attention(Builder& b) {
  b.within("attn.", [&] {
    b.buffer("IGNORE");
    b.buffer("rotary_sin");
    b.buffer("rotary_cos");
    const bool grouped = b.has("_W_K");
    b.attention_of_stacks("W_Q", grouped ? "_W_K" : "W_K", grouped ? "_W_V" : "W_V");
    b.writes_stack("attention out", "W_O");
  });
}

void mlp(Builder& b) {
  if (!b.has("mlp.")) return;
  b.norm("ln2", "mlp input");
  b.reads("mlp gate", "mlp.W_gate", 0, Need::optional);
  const std::uint64_t inner = b.reads("mlp in", "mlp.W_in");
  if (b.has("mlp.ln.")) {
    b.norm_inside("mlp.ln", "mlp inner", inner);
    b.reads("mlp out", "mlp.W_out");
  }
  b.writes("mlp out", "mlp.W_out", inner);
}

// GPT-Neo has the same tensors, but scores without a factor and with windows, which its masks show; Mistral's
// are those of its configuration. Models without MLPs may add positions to queries and keys only.
void limits(Builder& b) {
  bool causal = true;
  const bool is_stated = !b.model_type().empty();
  const bool has_windows = b.model_type() == "mistral";
  if (has_windows) b.windows({.kinds_key = ""});
  b.each_part("blocks.{}.", [&] {
    const bool agrees = (is_stated && !b.has("attn.mask")) || b.causal_mask("attn.mask");
    causal = (agrees || has_windows) && causal;
  });
  if (!causal) b.scores_not_modelled("the scale of scores, which no mask of the file confirms");
  if (!b.has("blocks.0.mlp.")) b.scores_not_modelled("positions, which the file does not state");
}

// Gains that are folded into their readers leave no tensor. Then the positions tell the kind of the norms: a
// table is that of GPT-2, rotations those of Llama.
void transformer_lens_forward(Builder& b) {
  const bool is_folded = !b.has("blocks.0.ln1.");
  const bool rotates = b.has("blocks.0.attn.rotary_sin");
  const bool centred = is_folded ? !rotates : b.has("blocks.0.ln1.b");
  b.norms({.kind = centred ? NormKind::layer : NormKind::rms,
           .placement = Placement::pre,
           .eps = 1e-5,
           .gainless = is_folded});
  b.decoder({.activation = rotates ? "silu" : "gelu_new"});
  if (rotates) b.rotary({});
  if (b.model_type().empty()) {
    b.note(
        "scores divided by the root of the head width are assumed: TransformerLens stores no configuration");
  }
  b.layout(Layout::in_out);
  limits(b);
  if (rotates && b.model_type().empty()) {
    b.scores_not_modelled("the frequencies of rotations, which no configuration states");
  }
  b.embedding("token embedding", "embed.W_E");
  if (!rotates) b.embedding("position embedding", "pos_embed.W_pos");
  b.each_layer("blocks.{}.", [&] {
    b.norm("ln1", "attention input");
    transformer_lens_attention(b);
    mlp(b);
  });
  b.norm("ln_final", "final");
  b.stores_head();
  b.unembedding({"unembed.W_U"}, false, true, "unembed.b_U");
}

}  // namespace

extern const Architecture transformer_lens = {
    .name = "transformer_lens",
    .title = "GPT-2 or another model in the names of TransformerLens",
    .model_types = {"gpt2", "llama", "mistral"},
    .signature = {"blocks.{}.attn.W_Q", "embed.W_E", "unembed.W_U"},
    .without = {"embed.pos_embed.W_pos"},
    .describe = transformer_lens_forward,
};

}  // namespace normscope::models::architectures
