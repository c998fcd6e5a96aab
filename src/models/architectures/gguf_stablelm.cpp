#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Without a second norm in a layer, attention and MLP read the first one side by side.
void gguf_stablelm_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.decoder({.activation = "silu", .fixed_activation = true});
  b.rotary({.dims = gguf_rotary_dims(b)});
  gguf_stack(b, gguf_parallel_layer);
}

}  // namespace

extern const Architecture gguf_stablelm = {
    .name = "gguf_stablelm",
    .title = "StableLM in llama.cpp's names",
    .model_types = {"stablelm"},
    .signature = {"blk.{}.attn_output.", "blk.{}.attn_norm.", "blk.{}.ffn_gate."},
    .without = {},
    .describe = gguf_stablelm_forward,
    .harmless = {"use_parallel_residual"},  // the tensors show it
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
