#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void gguf_phi3_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5});
  b.decoder({.activation = "silu", .fixed_activation = true});
  b.rotary({.dims = gguf_rotary_dims(b)});
  b.windows({.kinds_key = ""});
  if (b.config().has({"sliding_window"})) {
    b.note("heads attend to the window that the file states; llama.cpp runs Phi-3 without it");
  }
  gguf_stack(b);
}

}  // namespace

extern const Architecture gguf_phi3 = {
    .name = "gguf_phi3",
    .title = "Phi-3 in llama.cpp's names",
    .model_types = {"phi3"},
    .signature = {"blk.{}.attn_qkv.", "blk.{}.attn_norm.", "blk.{}.ffn_up."},
    .without = {},
    .describe = gguf_phi3_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
