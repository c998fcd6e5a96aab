#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Every head has a sink: a learned score of its own in the softmax. Gate and input of an expert, which
// alternate in one matrix of Hugging Face's files, are two.
void gguf_gpt_oss_layer(Builder& b) {
  b.norm("attn_norm", "attention input");
  gguf_attention(b);
  b.sinks("attn_sinks");
  b.norm("post_attention_norm", "mlp input");
  gguf_gated_mlp(b);
}

void gguf_gpt_oss_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5});
  b.rotary({.theta = 150'000.0, .dims = gguf_rotary_dims(b)});
  b.windows({.period = 2});
  // llama.cpp has these numbers in its code.
  b.decoder({.activation = "silu",
             .fixed_activation = true,
             .clamped_gate = ClampedGate{1.702, 7.0},
             .routing = softmax_routing(b, true)});
  gguf_stack(b, gguf_gpt_oss_layer);
}

}  // namespace

extern const Architecture gguf_gpt_oss = {
    .name = "gguf_gpt_oss",
    .title = "gpt-oss in llama.cpp's names",
    .model_types = {"gpt-oss"},
    .signature = {"blk.{}.attn_sinks.", "blk.{}.attn_output.", "blk.{}.ffn_gate_inp."},
    .without = {},
    .describe = gguf_gpt_oss_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
