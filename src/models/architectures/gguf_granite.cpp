#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Llama with four multipliers; "logit_scale" is a divisor. Rows of queries and keys are ordered as Llama's.
void gguf_granite_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-6});
  b.decoder({.activation = "silu",
             .fixed_activation = true,
             .embedding_scale = b.config().number({"embedding_scale"}).value_or(1.0),
             .branch_scale = b.config().number({"residual_scale"}).value_or(1.0),
             .routing = softmax_routing(b, true)});
  b.rotary({.interleaved = true, .dims = gguf_rotary_dims(b)});
  b.scores({.scale = b.config().number({"attention_scale"})});
  const double divisor = b.config().number({"logit_scale"}).value_or(1.0);
  b.logits(divisor == 0.0 ? 1.0 : 1.0 / divisor);
  gguf_stack(b);
}

}  // namespace

extern const Architecture gguf_granite = {
    .name = "gguf_granite",
    .title = "Granite in llama.cpp's names",
    .model_types = {"granite", "granitemoe"},
    .signature = {"blk.{}.attn_output.", "blk.{}.attn_norm.", "blk.{}.ffn_norm."},
    .without = {},
    .describe = gguf_granite_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
