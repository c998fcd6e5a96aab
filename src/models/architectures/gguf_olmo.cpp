#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Norms have neither gain nor bias. Rows of queries and keys are ordered as Llama's.
void gguf_olmo_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .gainless = true});
  b.decoder({.activation = "silu", .fixed_activation = true});
  b.scores({.clip = b.config().number({"clip_qkv"})});
  b.rotary({.interleaved = true, .dims = gguf_rotary_dims(b)});
  gguf_stack(b);
}

}  // namespace

extern const Architecture gguf_olmo = {
    .name = "gguf_olmo",
    .title = "OLMo in llama.cpp's names",
    .model_types = {"olmo"},
    .signature = {"blk.{}.attn_output.", "blk.{}.ffn_gate."},
    .without = {"blk.{}.attn_norm."},
    .describe = gguf_olmo_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
