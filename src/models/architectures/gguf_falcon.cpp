#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The converter orders the rows of the fused matrix as [queries | keys | values]. In a layer with two norms
// attention reads the second and the MLP the first.
void gguf_falcon_layer(Builder& b) {
  const bool two = b.has("attn_norm_2.");
  b.norm(two ? "attn_norm_2" : "attn_norm", "attention input");
  const std::uint64_t attended = b.fused_attention("attn_qkv");
  if (two) b.norm_beside("attn_norm", "mlp input");
  b.writes("attention out", "attn_output", attended);
  gguf_plain_mlp(b);
}

void gguf_falcon_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  gguf_exact_gelu(b);
  b.rotary({.dims = gguf_rotary_dims(b)});
  gguf_stack(b, gguf_falcon_layer);
}

}  // namespace

extern const Architecture gguf_falcon = {
    .name = "gguf_falcon",
    .title = "Falcon in llama.cpp's names",
    .model_types = {"falcon"},
    .signature = {"blk.{}.attn_qkv.", "blk.{}.attn_norm.", "blk.{}.ffn_up."},
    .without = {},
    .describe = gguf_falcon_forward,
    .harmless = {"tensor_data_layout"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
