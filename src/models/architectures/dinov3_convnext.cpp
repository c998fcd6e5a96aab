#include <cstddef>
#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// A depthwise convolution, a norm of its output, and an MLP.
void dinov3_convnext_block(Builder& b) {
  b.norm_of_outputs("layer_norm", "mlp input", {.role = "depthwise convolution", .map = "depthwise_conv"});
  const std::uint64_t inner = b.reads("mlp in", "pointwise_conv1");
  b.writes("mlp out", "pointwise_conv2", inner);
  branch_scale(b, "gamma");
}

// The norm of a stage's beginning stands behind its convolution in the first stage and before it in others.
void dinov3_convnext_stage(Builder& b, std::size_t number) {
  if (number == 0) {
    b.input_map("patch embedding", "downsample_layers.0");
    b.norm("downsample_layers.1", "embedding", Placement::post);
  } else {
    b.norm("downsample_layers.0", "downsampling");
  }
  b.reads_are_indirect();  // a convolution of several positions
  if (number != 0) {
    b.new_stream();
    b.stream(0);
    b.input_map("downsampling", "downsample_layers.1");
  }
  b.each_layer_of_stage("layers.{}.", number, [&] { dinov3_convnext_block(b); });
}

// ConvNeXt with other names, and one eps. The mean over positions stands beside them before the final norm.
void dinov3_convnext_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-6, .eps_key = "layer_norm_eps"});
  b.stream(0);
  b.each_stage("stages.{}.", [&](std::size_t number) { dinov3_convnext_stage(b, number); });
  b.writes_are_indirect();
  b.norm("layer_norm", "final");
}

}  // namespace

extern const Architecture dinov3_convnext = {
    .name = "dinov3_convnext",
    .title = "DINOv3's ConvNeXt",
    .model_types = {"dinov3_convnext"},
    .signature = {"stages.{}.layers.{}.depthwise_conv.", "stages.{}.layers.{}.layer_norm.",
                  "stages.{}.downsample_layers.{}."},
    .without = {},
    .describe = dinov3_convnext_forward,
    .tower = Tower::vision,
    .harmless = {"depths", "hidden_sizes", "layer_scale_init_value", "num_stages", "out_features",
                 "out_indices", "stage_names"},
};

}  // namespace normscope::models::architectures
