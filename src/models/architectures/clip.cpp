#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// OWL-ViT's heads: the final norm's output, times that of the class token, passes one more norm.
void detection_heads(Builder& b) {
  if (!b.model_type().starts_with("owl")) return;
  b.has_other_readers();
  b.where("layer_norm", [&] {
    b.norm_inside("", "detection input", b.width());
    for (const char* const map : {"class_head.dense0", "class_head.logit_shift", "class_head.logit_scale",
                                  "box_head.dense0", "objectness_head.dense0"}) {
      b.where(map, [&] { b.reads("detection head", ""); });
    }
    for (const char* const head : {"box_head.", "objectness_head."}) {
      b.where(head, [&] {
        for (const char* const name : {"dense1.weight", "dense1.bias", "dense2.weight", "dense2.bias"}) {
          b.other(name);
        }
      });
    }
  });
}

void clip_forward(Builder& b) {
  b.other("logit_scale");
  b.other("logit_bias");
  if (b.has("vision_model.")) {
    b.tower(Tower::vision);
    clip_vision_tower(b, clip_family(b));
    detection_heads(b);
    b.tower(Tower::text);
  }
  clip_text_tower(b, clip_family(b));
}

}  // namespace

extern const Architecture clip = {
    .name = "clip",
    .title = "CLIP or SigLIP",
    .model_types = {"clip", "clip_text_model", "siglip", "siglip_text_model", "siglip2", "siglip2_text_model",
                    "metaclip_2", "metaclip_2_text_model", "owlvit", "owlvit_text_model", "owlv2_text_model",
                    "owlv2"},
    .signature = {"text_model.encoder.layers.{}.layer_norm1.", "text_model.final_layer_norm."},
    .without = {},
    .describe = clip_forward,
    .harmless = {"projection_dim", "projection_size", "vision_use_head", "logit_scale_init_value"},
    .centres_exactly = true,
    .rotates_exactly = true,
};

}  // namespace normscope::models::architectures
