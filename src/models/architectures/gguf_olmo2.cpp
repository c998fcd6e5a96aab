#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Branches read the stream without a norm, and their outputs are normalized.
void gguf_olmo2_layer(Builder& b) {
  b.branch();
  gguf_attention(b);
  b.norm_of_branch("post_attention_norm", "attention output");
  b.branch();
  gguf_gated_mlp(b);
  b.norm_of_branch("post_ffw_norm", "mlp output");
}

void gguf_olmo2_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5});
  b.note("attention and MLP read the residual stream without a norm, so its heads' scores have no bound");
  b.decoder({.activation = "silu", .fixed_activation = true});
  const bool windows = b.config().has({"sliding_window"});
  b.rotary({.theta = windows ? 5e5 : 1e4,
            .has_local_theta = windows,
            .local_theta = windows ? 5e5 : 1e4,
            .dims = gguf_rotary_dims(b),
            .windows_unscaled = true});
  if (windows) b.windows({.period = 4});
  gguf_stack(b, gguf_olmo2_layer);
}

}  // namespace

extern const Architecture gguf_olmo2 = {
    .name = "gguf_olmo2",
    .title = "OLMo 2 or 3 in llama.cpp's names",
    .model_types = {"olmo2"},
    .signature = {"blk.{}.attn_output.", "blk.{}.post_attention_norm.", "blk.{}.post_ffw_norm."},
    .without = {"blk.{}.attn_norm."},
    .describe = gguf_olmo2_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
