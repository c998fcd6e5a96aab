#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The adapter reads several positions of the last norm at a time.
void llama4_vision_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = ""});
  b.stack("vision");
  b.scores_not_modelled("rotation by row and column");
  b.embedding("class token", "class_embedding");
  b.embedding("position embedding", "positional_embedding_vlm");
  b.input_map("patch embedding", "patch_embedding.linear");
  b.norm("layernorm_pre", "embedding", Placement::post);
  b.each_layer("model.layers.{}.", [&] { llama_encoder_layer(b); });
  b.norm("layernorm_post", "final");
  b.reads_are_indirect();
  b.other("vision_adapter.mlp.fc1.weight");
  b.other("vision_adapter.mlp.fc2.weight");
}

}  // namespace

extern const Architecture llama4_vision = {
    .name = "llama4_vision",
    .title = "Llama 4's vision tower",
    .model_types = {"llama4_vision_model"},
    .signature = {"model.layers.{}.self_attn.q_proj.", "layernorm_pre.", "positional_embedding_vlm"},
    .without = {},
    .describe = llama4_vision_forward,
    .tower = Tower::vision,
    .harmless = {"vision_output_dim", "norm_eps", "vision_feature_*", "pixel_shuffle_ratio", "projector_*",
                 "multi_modal_projector_bias", "rope_*"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
