#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void clip_vision_forward(Builder& b) { clip_vision_tower(b, clip_family(b)); }

}  // namespace

extern const Architecture clip_vision = {
    .name = "clip_vision",
    .title = "CLIP's or SigLIP's vision tower",
    .model_types = {"clip_vision_model", "siglip_vision_model", "siglip2_vision_model",
                    "metaclip_2_vision_model", "chinese_clip_vision_model", "idefics3_vision", "mlcd",
                    "mlcd_vision_model", "smolvlm_vision"},
    // From transformers 5 on without "vision_model." before them.
    .signature = {"embeddings.patch_embedding.", "encoder.layers.{}.layer_norm1."},
    .without = {},
    .describe = clip_vision_forward,
    .tower = Tower::vision,
    .harmless = {"projection_dim", "vision_use_head", "num_patches", "num_key_value_groups"},
};

}  // namespace normscope::models::architectures
