#include <cstdint>
#include <string>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void qwen_vision_block(Builder& b) {
  b.norm("norm1", "attention input");
  const std::uint64_t attended = b.fused_attention("attn.qkv");
  b.writes("attention out", "attn.proj", attended);
  b.norm("norm2", "mlp input");
  if (b.has("mlp.gate_proj.")) return gated_mlp(b, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
  const std::uint64_t inner = b.reads("mlp in", "mlp.fc1");
  b.writes("mlp out", "mlp.fc2", inner);
}

// Qwen2.5-VL has RMSNorms, and windows in most layers. The merger reads four rows of the last norm at a time.
void qwen2_vl_vision_forward(Builder& b) {
  const bool newer = b.model_type().starts_with("qwen2_5");
  b.norms({.kind = newer ? NormKind::rms : NormKind::layer,
           .placement = Placement::pre,
           .eps = 1e-6,
           .eps_key = ""});
  b.stack("vision");
  // "hidden_size" is the width of Qwen2-VL's text model.
  b.stream(b.config().count({newer ? "hidden_size" : "embed_dim"}).value_or(0));
  b.scores_not_modelled(newer ? "rotation by row and column, windows" : "rotation by row and column");
  b.input_map("patch embedding", "patch_embed.proj");
  b.each_layer("blocks.{}.", [&] { qwen_vision_block(b); });
  b.norm("merger.ln_q", "final");
  b.reads_are_indirect();
}

}  // namespace

extern const Architecture qwen2_vl_vision = {
    .name = "qwen2_vl_vision",
    .title = "the vision tower of Qwen2-VL or Qwen2.5-VL",
    .model_types = {"qwen2_vl_vision", "qwen2_vl", "qwen2_5_vl_vision", "qwen2_5_vl"},
    .signature = {"blocks.{}.attn.qkv.", "merger.ln_q.", "patch_embed.proj."},
    .without = {},
    .describe = qwen2_vl_vision_forward,
    .tower = Tower::vision,
    .harmless = {"embed_dim", "in_channels", "in_chans", "spatial_*", "temporal_patch_size",
                 "tokens_per_second", "out_hidden_size", "fullatt_block_indexes", "window_size",
                 "hidden_size", "rope_parameters"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
