#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void aimv2_forward(Builder& b) {
  b.other("logit_scale");
  if (b.has("vision_model.")) {
    b.tower(Tower::vision);
    b.within("vision_model.", [&] { aimv2_vision_tower(b); });
    // The head's output is projected, not a norm.
    b.other("visual_projection.weight");
    b.tower(Tower::text);
    b.new_stream();
  }
  b.within("text_model.", [&] { aimv2_text_tower(b); });
  b.reads("projection", "text_projection");
}

}  // namespace

extern const Architecture aimv2 = {
    .name = "aimv2",
    .title = "AIMv2",
    .model_types = {"aimv2", "aimv2_text_model"},
    .signature = {"text_model.encoder.layers.{}.rms_norm1.", "text_model.encoder.layers.{}.ffn.gate_proj."},
    .without = {},
    .describe = aimv2_forward,
    .harmless = {"projection_dim", "use_head", "is_native", "logit_scale_init_value", "max_logit_scale"},
};

}  // namespace normscope::models::architectures
