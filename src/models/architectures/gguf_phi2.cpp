#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Attention and MLP read the single norm of a layer.
void gguf_phi2_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.decoder({.activation = "gelu_new", .fixed_activation = true});
  b.rotary({.dims = gguf_rotary_dims(b)});
  gguf_stack(b, gguf_parallel_layer);
}

}  // namespace

extern const Architecture gguf_phi2 = {
    .name = "gguf_phi2",
    .title = "Phi-2 in llama.cpp's names",
    .model_types = {"phi2"},
    .signature = {"blk.{}.attn_output.", "blk.{}.attn_norm.", "blk.{}.ffn_up."},
    .without = {},
    .describe = gguf_phi2_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
