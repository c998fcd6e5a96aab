#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// GPT-2 with norms behind its sums, and none at the end: the first attention reads the embeddings themselves.
void openai_gpt_forward(Builder& b) {
  b.norms(
      {.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-5, .eps_key = "layer_norm_epsilon"});
  b.layout(Layout::in_out);
  b.embedding("token embedding", "tokens_embed");
  b.embedding("position embedding", "positions_embed");
  b.each_layer("h.{}.", [&] {
    b.buffer("attn.bias");  // the causal mask
    const std::uint64_t attended = b.fused_attention("attn.c_attn");
    b.writes("attention out", "attn.c_proj", attended);
    b.norm("ln_1", "attention output");
    const std::uint64_t inner = b.reads("mlp in", "mlp.c_fc");
    b.writes("mlp out", "mlp.c_proj", inner);
    b.norm("ln_2", "mlp output");
  });
  b.layout(Layout::out_in);
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture openai_gpt = {
    .name = "openai_gpt",
    .title = "GPT (the first)",
    .model_types = {"openai-gpt"},
    .signature = {"h.{}.attn.c_attn.", "h.{}.ln_1.", "tokens_embed."},
    .without = {},
    .describe = openai_gpt_forward,
    .harmless = {"afn", "n_special", "predict_special_tokens"},
};

}  // namespace normscope::models::architectures
