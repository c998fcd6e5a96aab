#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void clip_text_forward(Builder& b) { clip_text_tower(b, clip_family(b)); }

}  // namespace

// As transformers writes it from version 5 on.
extern const Architecture clip_text = {
    .name = "clip_text",
    .title = "CLIP's or SigLIP's text tower",
    .model_types = {"clip_text_model", "siglip_text_model", "siglip2_text_model", "metaclip_2_text_model"},
    .signature = {"embeddings.token_embedding.", "encoder.layers.{}.layer_norm1.", "final_layer_norm."},
    .without = {"text_model.encoder.layers.{}.layer_norm1."},
    .describe = clip_text_forward,
    .harmless = {"projection_dim", "projection_size"},
};

}  // namespace normscope::models::architectures
