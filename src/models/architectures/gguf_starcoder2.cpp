#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Nemotron's gains are stored as they are used, unlike in Hugging Face's files.
void gguf_starcoder2_forward(Builder& b) {
  const bool nemotron = b.model_type() == "nemotron";
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.decoder({.activation = nemotron ? "relu2" : "gelu_pytorch_tanh", .fixed_activation = true});
  b.rotary({.dims = gguf_rotary_dims(b)});
  if (!nemotron) b.windows({.kinds_key = ""});
  gguf_stack(b, gguf_plain_layer);
}

}  // namespace

extern const Architecture gguf_starcoder2 = {
    .name = "gguf_starcoder2",
    .title = "StarCoder2 or Nemotron in llama.cpp's names",
    .model_types = {"starcoder2", "nemotron"},
    .signature = {"blk.{}.attn_output.", "blk.{}.attn_norm.", "blk.{}.ffn_up."},
    .without = {},
    .describe = gguf_starcoder2_forward,
    .harmless = {"rms_norm_eps"},  // Nemotron's, stated twice
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
