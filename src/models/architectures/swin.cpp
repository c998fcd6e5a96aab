#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Two norms have this eps whatever the configuration says.
constexpr double kSwinEps = 1e-5;

void swin_block(Builder& b) {
  b.norm("layernorm_before", "attention input");
  const std::uint64_t attended =
      b.attention("attention.self.query", "attention.self.key", "attention.self.value");
  b.other("attention.self.relative_position_bias_table");
  b.buffer("attention.self.relative_position_index");
  b.writes("attention out", "attention.output.dense", attended);
  b.norm("layernorm_after", "mlp input");
  const std::uint64_t inner = b.reads("mlp in", "intermediate.dense");
  b.writes("mlp out", "output.dense", inner);
}

// Four neighbouring positions become one of twice the width.
void merge_patches(Builder& b) {
  if (!b.has("downsample.")) return;
  const std::uint64_t width = b.width();
  b.stream(4 * width);
  b.writes_are_indirect();
  b.norm("downsample.norm", "downsampling");
  b.last_eps(kSwinEps, {});
  b.leads_over("downsampling", "downsample.reduction", 2 * width);
}

void swin_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_eps"});
  b.scores_not_modelled("relative_position_bias, windows");
  swin_stages(
      b, kSwinEps, [&] { swin_block(b); }, [&] { merge_patches(b); });
}

}  // namespace

extern const Architecture swin = {
    .name = "swin",
    .title = "Swin",
    .model_types = {"swin"},
    .signature = {"encoder.layers.{}.blocks.{}.layernorm_before.",
                  "encoder.layers.{}.blocks.{}.attention.self.query.",
                  "encoder.layers.{}.blocks.{}.attention.self.relative_position_bias_table"},
    .without = {"encoder.layers.{}.blocks.{}.attention.self.logit_scale"},
    .describe = swin_forward,
    .tower = Tower::vision,
    .harmless = {"depths", "embed_dim", "out_features", "out_indices", "stage_names", "path_norm",
                 "use_absolute_embeddings", "window_size"},
};

}  // namespace normscope::models::architectures
