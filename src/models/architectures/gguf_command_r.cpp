#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Attention and MLP read the single norm of a layer. Command R7B has windows, all but in the last of each
// four layers, and rotates queries and keys only there.
void gguf_command_r_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.decoder({.activation = "silu", .fixed_activation = true});
  const bool second = b.model_type() == "cohere2";
  b.rotary({.interleaved = true, .dims = gguf_rotary_dims(b), .windows_only = second});
  if (second) b.windows({.period = 4});
  b.logits(b.config().number({"logit_scale"}).value_or(0.0625));
  gguf_stack(b, gguf_parallel_layer);
}

}  // namespace

extern const Architecture gguf_command_r = {
    .name = "gguf_command_r",
    .title = "Command R or R7B in llama.cpp's names",
    .model_types = {"command-r", "cohere2"},
    .signature = {"blk.{}.attn_output.", "blk.{}.attn_norm.", "blk.{}.ffn_gate."},
    .without = {},
    .describe = gguf_command_r_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
