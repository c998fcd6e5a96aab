#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The converter orders the rows of the fused matrix as [queries | keys | values], which are mixed per head in
// Hugging Face's files.
void gguf_gpt_neox_layer(Builder& b) {
  b.norm("attn_norm", "attention input");
  const std::uint64_t attended = b.fused_attention("attn_qkv");
  if (b.config().flag({"use_parallel_residual"}).value_or(true)) {
    b.norm_beside("ffn_norm", "mlp input");
    b.writes("attention out", "attn_output", attended);
  } else {
    b.writes("attention out", "attn_output", attended);
    b.norm("ffn_norm", "mlp input");
  }
  gguf_plain_mlp(b);
}

void gguf_gpt_neox_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  gguf_exact_gelu(b);
  b.rotary({.dims = gguf_rotary_dims(b)});
  gguf_stack(b, gguf_gpt_neox_layer);
}

}  // namespace

extern const Architecture gguf_gpt_neox = {
    .name = "gguf_gpt_neox",
    .title = "GPT-NeoX or Pythia in llama.cpp's names",
    .model_types = {"gptneox"},
    .signature = {"blk.{}.attn_qkv.", "blk.{}.attn_norm.", "blk.{}.ffn_norm."},
    .without = {},
    .describe = gguf_gpt_neox_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
