#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void aimv2_vision_forward(Builder& b) { aimv2_vision_tower(b); }

}  // namespace

extern const Architecture aimv2_vision = {
    .name = "aimv2_vision",
    .title = "AIMv2's vision tower",
    .model_types = {"aimv2_vision_model"},
    .signature = {"embeddings.rms_norm.", "encoder.layers.{}.rms_norm1.", "encoder.layers.{}.ffn.gate_proj."},
    .without = {},
    .describe = aimv2_vision_forward,
    .tower = Tower::vision,
    .harmless = {"use_head", "is_native"},
};

}  // namespace normscope::models::architectures
