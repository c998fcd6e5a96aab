#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void transformer_lens_attention(Builder& b) {
  b.within("attn.", [&] {
    b.buffer("IGNORE");
    b.attention_of_stacks("W_Q", "W_K", "W_V");
    // A matrix for each head, whose outputs are added.
    b.other("W_O");
    b.other("b_O");
    b.writes_are_indirect();
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

// GPT-Neo has the same tensors, but scores without a factor and with windows, which its masks show. Models
// without MLPs may add positions to queries and keys only.
void limits(Builder& b) {
  bool causal = true;
  b.each_part("blocks.{}.", [&] { causal = b.causal_mask("attn.mask") && causal; });
  if (!causal) b.scores_not_modelled("the scale of scores, which no mask of the file confirms");
  if (!b.has("blocks.0.mlp.")) b.scores_not_modelled("positions, which the file does not state");
}

void transformer_lens_forward(Builder& b) {
  const bool centred = b.has("blocks.0.ln1.b");
  b.norms({.kind = centred ? NormKind::layer : NormKind::rms, .placement = Placement::pre, .eps = 1e-5});
  b.note("scores divided by the root of the head width are assumed: TransformerLens stores no configuration");
  b.layout(Layout::in_out);
  limits(b);
  b.embedding("token embedding", "embed.W_E");
  b.embedding("position embedding", "pos_embed.W_pos");
  b.each_layer("blocks.{}.", [&] {
    b.norm("ln1", "attention input");
    transformer_lens_attention(b);
    mlp(b);
  });
  b.norm("ln_final", "final");
  b.unembedding({"unembed.W_U"}, false, true, "unembed.b_U");
}

}  // namespace

extern const Architecture transformer_lens = {
    .name = "transformer_lens",
    .title = "GPT-2 or another model in the names of TransformerLens",
    .model_types = {},
    .signature = {"blocks.{}.attn.W_Q", "blocks.{}.ln1.w", "pos_embed.W_pos", "ln_final.w"},
    .without = {"embed.pos_embed.W_pos", "blocks.{}.attn.rotary_sin"},
    .describe = transformer_lens_forward,
};

}  // namespace normscope::models::architectures
