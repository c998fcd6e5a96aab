#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Two stacks, of which the second multiplies each branch by a learned number. The text model reads outputs of
// several layers beside each other. The norms around the stacks have torch's eps, whatever is stated.
void mllama_vision_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "norm_eps"});
  b.heads() = {.heads = b.config().count({"attention_heads"}).value_or(0)};
  b.stack("vision");
  b.scores_not_modelled("mask of tiles");
  b.embedding("class token", "class_embedding");
  b.input_map("patch embedding", "patch_embedding");
  for (const char* name : {"gated_positional_embedding.", "pre_tile_positional_embedding."})
    b.partial_input(name);
  b.norm("layernorm_pre", "embedding", Placement::post);
  b.last_eps(1e-5, {});
  b.each_layer("transformer.layers.{}.", [&] { llama_encoder_layer(b); });
  b.norm("layernorm_post", "output", Placement::post);
  b.last_eps(1e-5, {});
  b.partial_input("post_tile_positional_embedding.");
  b.stack("vision, global");
  b.each_layer("global_transformer.layers.{}.", [&] { llama_encoder_layer(b); }, {"num_global_layers"});
}

}  // namespace

extern const Architecture mllama_vision = {
    .name = "mllama_vision",
    .title = "Llama 3.2's vision tower",
    .model_types = {"mllama_vision_model"},
    .signature = {"global_transformer.layers.{}.self_attn.q_proj.", "layernorm_pre.",
                  "gated_positional_embedding."},
    .without = {},
    .describe = mllama_vision_forward,
    .tower = Tower::vision,
    .harmless = {"attention_heads", "num_global_layers", "vision_output_dim", "max_num_tiles",
                 "intermediate_layers_indices", "supported_aspect_ratios"},
};

}  // namespace normscope::models::architectures
