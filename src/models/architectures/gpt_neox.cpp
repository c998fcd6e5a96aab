#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

LensBlocks gpt_neox_settings(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_eps"});
  const bool japanese = b.model_type() == "gpt_neox_japanese";  // its last layer has a bias of its own
  if (!japanese) b.decoder({.activation = "gelu"});
  b.rotary({.portion = japanese ? 1.0 : 0.25, .theta_key = "rotary_emb_base", .portion_key = "rotary_pct"});
  const bool parallel = !japanese && b.config().flag({"use_parallel_residual"}).value_or(true);
  return parallel ? LensBlocks::parallel : LensBlocks::sequential;
}

void gpt_neox_forward(Builder& b) {
  const bool parallel = gpt_neox_settings(b) == LensBlocks::parallel;
  b.embedding("token embedding", "embed_in");
  b.each_layer("layers.{}.", [&] {
    for (const char* name : {"attention.bias", "attention.masked_bias"}) b.buffer(name);
    b.norm("input_layernorm", "attention input");
    const std::uint64_t attended = b.attention_fused_per_head("attention.query_key_value");
    b.rotary_buffer("attention.rotary_emb.inv_freq");
    if (parallel) {
      b.norm_beside("post_attention_layernorm", "mlp input");
      b.writes("attention out", "attention.dense", attended);
    } else {
      if (b.has("attention.dense_bias")) {  // this layer alone
        b.within("attention.", [&] { b.writes("attention out", "dense", attended); });
      } else {
        b.writes("attention out", "attention.dense", attended);
      }
      b.norm("post_attention_layernorm", "mlp input");
    }
    const std::uint64_t inner = b.reads("mlp in", "mlp.dense_h_to_4h");
    b.writes("mlp out", "mlp.dense_4h_to_h", inner);
  });
  b.norm("final_layer_norm", "final");
  b.unembedding({"embed_out"}, b.model_type() == "gpt_neox_japanese");
}

}  // namespace

extern const Architecture gpt_neox = {
    .name = "gpt_neox",
    .title = "GPT-NeoX or Pythia",
    .model_types = {"gpt_neox", "gpt_neox_japanese"},
    .signature = {"layers.{}.attention.query_key_value.", "layers.{}.input_layernorm."},
    .without = {},
    .describe = gpt_neox_forward,
    .harmless = {"intermediate_multiple_size"},
    .centres_exactly = true,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_gpt_neox",
    .in_transformer_lens = gpt_neox_settings,
};

}  // namespace normscope::models::architectures
