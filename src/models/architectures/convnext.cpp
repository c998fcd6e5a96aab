#include <cstddef>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Every norm but the last, which follows the mean over positions, has this eps whatever the configuration
// says.
constexpr double kConvnextEps = 1e-6;

// A depthwise convolution, a norm of its output, and an MLP.
void convnext_block(Builder& b) {
  b.norm_of_outputs("layernorm", "mlp input", {.role = "depthwise convolution", .map = "dwconv"});
  b.last_eps(kConvnextEps, {});
  const std::uint64_t inner = b.reads("mlp in", "pwconv1");
  b.other("grn.weight");  // V2 divides each inner feature by its length over positions
  b.other("grn.bias");
  b.writes("mlp out", "pwconv2", inner);
  branch_scale(b, "layer_scale_parameter");
}

void stage(Builder& b, std::size_t number) {
  if (b.has("downsampling_layer.")) {
    b.norm("downsampling_layer.0", "downsampling");
    b.last_eps(kConvnextEps, {});
    b.reads_are_indirect();  // a convolution of several positions
    b.new_stream();
    b.stream(0);
    b.input_map("downsampling", "downsampling_layer.1");
  }
  b.each_layer_of_stage("layers.{}.", number, [&] { convnext_block(b); });
}

void convnext_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  b.stream(0);
  b.stack("stage 0");
  b.input_map("patch embedding", "embeddings.patch_embeddings");
  b.norm("embeddings.layernorm", "embedding", Placement::post);
  b.last_eps(kConvnextEps, {});
  b.reads_are_indirect();  // a convolution of several positions
  b.each_stage("encoder.stages.{}.", [&](std::size_t number) { stage(b, number); });
  b.writes_are_indirect();
  b.norm("layernorm", "final");
  b.where("classifier", [&] { b.reads("classifier", "", 0, Need::optional); });
}

}  // namespace

extern const Architecture convnext = {
    .name = "convnext",
    .title = "ConvNeXt",
    .model_types = {"convnext", "convnextv2"},
    .signature = {"encoder.stages.{}.layers.{}.dwconv.", "encoder.stages.{}.layers.{}.layernorm.",
                  "encoder.stages.{}.layers.{}.pwconv1."},
    .without = {},
    .describe = convnext_forward,
    .tower = Tower::vision,
    .harmless = {"depths", "hidden_sizes", "layer_scale_init_value", "num_stages", "out_features",
                 "out_indices", "stage_names"},
};

}  // namespace normscope::models::architectures
