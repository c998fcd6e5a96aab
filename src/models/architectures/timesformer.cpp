#include <cstdint>
#include <string>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void timesformer_attention(Builder& b, const std::string& name) {
  const std::uint64_t attended = b.fused_attention(name + ".attention.qkv");
  if (name == "attention") return b.writes("attention out", name + ".output.dense", attended);
  b.other(name + ".output.dense.weight");  // read by the next map
  b.other(name + ".output.dense.bias");
}

// First over the frames of each patch, whose output passes another map, then over the patches of each frame,
// whose class tokens are averaged.
void timesformer_layer(Builder& b) {
  if (b.has("temporal_attention.")) {
    b.norm("temporal_layernorm", "attention over time input");
    timesformer_attention(b, "temporal_attention");
    b.writes("attention over time out", "temporal_dense");
    b.writes_are_indirect();
  }
  b.norm("layernorm_before", "attention input");
  timesformer_attention(b, "attention");
  b.writes_are_indirect();
  b.norm("layernorm_after", "mlp input");
  const std::uint64_t inner = b.reads("mlp in", "intermediate.dense");
  b.writes("mlp out", "output.dense", inner);
}

void timesformer_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-6, .eps_key = "layer_norm_eps"});
  b.scores_not_modelled("attention within frames and along time");
  b.embedding("class token", "embeddings.cls_token");
  b.embedding("position embedding", "embeddings.position_embeddings");
  b.embedding("time embedding", "embeddings.time_embeddings", Need::optional);
  b.input_map("patch embedding", "embeddings.patch_embeddings.projection");
  b.each_layer("encoder.layer.{}.", [&] { timesformer_layer(b); });
  b.norm("layernorm", "final");
  b.where("classifier", [&] { b.reads("classifier", "", 0, Need::optional); });
}

}  // namespace

extern const Architecture timesformer = {
    .name = "timesformer",
    .title = "TimeSformer",
    .model_types = {"timesformer"},
    .signature = {"encoder.layer.{}.layernorm_before.", "encoder.layer.{}.attention.attention.qkv."},
    .without = {},
    .describe = timesformer_forward,
    .tower = Tower::vision,
    .harmless = {"num_frames", "attention_type"},
};

}  // namespace normscope::models::architectures
