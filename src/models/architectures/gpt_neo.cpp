#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Scores are not divided by the square root of the head width. Some layers attend to a window.
LensBlocks gpt_neo_settings(Builder& b) {
  b.norms(
      {.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_epsilon"});
  b.decoder({.activation = "gelu_new"});
  for (const Biased of : {Biased::queries, Biased::keys, Biased::values}) b.biases_by(of, {});
  b.scores({.scale = 1.0});
  b.windows({.kinds_key = "attention_layers"});
  if (!b.config().has({"attention_layers"})) b.scores_not_modelled("attention_types");
  return LensBlocks::sequential;
}

void gpt_neo_forward(Builder& b) {
  gpt_neo_settings(b);
  b.embedding("token embedding", "wte");
  b.embedding("position embedding", "wpe");
  b.each_layer("h.{}.", [&] {
    for (const char* name : {"attn.attention.bias", "attn.attention.masked_bias"}) b.buffer(name);
    b.norm("ln_1", "attention input");
    const std::uint64_t attended =
        b.attention("attn.attention.q_proj", "attn.attention.k_proj", "attn.attention.v_proj");
    b.writes("attention out", "attn.attention.out_proj", attended);
    b.norm("ln_2", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "mlp.c_fc");
    b.writes("mlp out", "mlp.c_proj", inner);
  });
  b.norm("ln_f", "final");
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture gpt_neo = {
    .name = "gpt_neo",
    .title = "GPT-Neo",
    .model_types = {"gpt_neo"},
    .signature = {"h.{}.attn.attention.q_proj.", "h.{}.ln_1.", "h.{}.mlp.c_fc."},
    .without = {},
    .describe = gpt_neo_forward,
    .harmless = {"attention_types"},  // the same as attention_layers,
    .centres_exactly = true,
    .rotates_exactly = true,
    .in_transformer_lens = gpt_neo_settings,
};

}  // namespace normscope::models::architectures
