#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void clip_forward(Builder& b) {
  b.other("logit_scale");
  b.other("logit_bias");
  if (b.has("vision_model.")) {
    b.tower(Tower::vision);
    clip_vision_tower(b, clip_family(b));
    b.tower(Tower::text);
  }
  clip_text_tower(b, clip_family(b));
}

}  // namespace

extern const Architecture clip = {
    .name = "clip",
    .title = "CLIP or SigLIP",
    .model_types = {"clip", "clip_text_model", "siglip", "siglip_text_model", "siglip2", "siglip2_text_model",
                    "metaclip_2", "metaclip_2_text_model"},
    .signature = {"text_model.encoder.layers.{}.layer_norm1.", "text_model.final_layer_norm."},
    .without = {},
    .describe = clip_forward,
    .harmless = {"projection_dim", "projection_size", "vision_use_head", "logit_scale_init_value"},
    .centres_exactly = true,
    .rotates_exactly = true,
};

}  // namespace normscope::models::architectures
