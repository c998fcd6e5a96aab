#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Two norms have this eps whatever the configuration says.
constexpr double kSwinv2Eps = 1e-5;

// Branches read the stream itself; a norm of each branch's output is added to it.
void swinv2_block(Builder& b) {
  b.branch();
  const std::uint64_t attended =
      b.attention("attention.self.query", "attention.self.key", "attention.self.value");
  b.other("attention.self.logit_scale");
  b.each_part("attention.self.continuous_position_bias_mlp.{}.", [&] {
    b.other("weight");
    b.other("bias");
  });
  for (const char* table : {"attention.self.relative_coords_table", "attention.self.relative_position_index"})
    b.buffer(table);
  b.writes("attention out", "attention.output.dense", attended);
  b.norm_of_branch("layernorm_before", "attention output");
  b.reads_the_stream();
  b.branch();
  const std::uint64_t inner = b.reads("mlp in", "intermediate.dense");
  b.writes("mlp out", "output.dense", inner);
  b.norm_of_branch("layernorm_after", "mlp output");
}

// Four neighbouring positions become one of twice the width, behind which the norm stands.
void swinv2_merging(Builder& b) {
  if (!b.has("downsample.")) return;
  const std::uint64_t width = b.width();
  b.stream_has_other_readers();
  b.new_stream();
  b.stream(2 * width);
  b.writes("downsampling", "downsample.reduction", 4 * width);
  b.norm("downsample.norm", "downsampling", Placement::post);
  b.last_eps(kSwinv2Eps, {});
}

void swinv2_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_eps"});
  b.scores_not_modelled("cosines times logit_scale, position bias, windows");
  swin_stages(
      b, kSwinv2Eps, [&] { swinv2_block(b); }, [&] { swinv2_merging(b); });
}

}  // namespace

extern const Architecture swinv2 = {
    .name = "swinv2",
    .title = "Swin V2",
    .model_types = {"swinv2"},
    .signature = {"encoder.layers.{}.blocks.{}.layernorm_before.",
                  "encoder.layers.{}.blocks.{}.attention.self.query.",
                  "encoder.layers.{}.blocks.{}.attention.self.logit_scale"},
    .without = {},
    .describe = swinv2_forward,
    .tower = Tower::vision,
    .harmless = {"depths", "embed_dim", "out_features", "out_indices", "stage_names",
                 "use_absolute_embeddings", "window_size", "pretrained_window_sizes"},
};

}  // namespace normscope::models::architectures
