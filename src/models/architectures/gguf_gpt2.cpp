#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void gguf_gpt2_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.decoder({.activation = "gelu_new", .fixed_activation = true});
  b.embedding("token embedding", "token_embd");
  b.embedding("position embedding", "position_embd");
  b.each_layer("blk.{}.", [&] {
    b.norm("attn_norm", "attention input");
    const std::uint64_t attended = b.fused_attention("attn_qkv");
    b.writes("attention out", "attn_output", attended);
    b.norm("ffn_norm", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "ffn_up");
    b.writes("mlp out", "ffn_down", inner);
  });
  b.norm("output_norm", "final");
  b.unembedding({"output"}, true);
}

}  // namespace

extern const Architecture gguf_gpt2 = {
    .name = "gguf_gpt2",
    .title = "GPT-2 in llama.cpp's names",
    .model_types = {"gpt2"},
    .signature = {"blk.{}.attn_qkv.", "blk.{}.attn_norm.", "position_embd."},
    .without = {},
    .describe = gguf_gpt2_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
