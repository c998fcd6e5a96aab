#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Attention and MLP read the single norm of a layer.
void gguf_command_r_layer(Builder& b) {
  b.norm("attn_norm", "attention input");
  gguf_attention(b);
  gguf_gated_mlp(b);
}

void gguf_command_r_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.decoder({.activation = "silu", .fixed_activation = true});
  b.rotary({.interleaved = true, .dims = gguf_rotary_dims(b)});
  b.logits(b.config().number({"logit_scale"}).value_or(0.0625));
  gguf_stack(b, gguf_command_r_layer);
}

}  // namespace

extern const Architecture gguf_command_r = {
    .name = "gguf_command_r",
    .title = "Command R in llama.cpp's names",
    .model_types = {"command-r"},
    .signature = {"blk.{}.attn_output.", "blk.{}.attn_norm.", "blk.{}.ffn_gate."},
    .without = {},
    .describe = gguf_command_r_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
