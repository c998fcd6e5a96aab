#include "clip_towers.hpp"

#include <string>

#include "builder.hpp"

namespace normscope::models {

namespace {

void clip_norms(Builder& b, ClipFamily family) {
  b.norms({.kind = NormKind::layer,
           .placement = Placement::pre,
           .eps = family == ClipFamily::siglip ? 1e-6 : 1e-5,
           .eps_key = "layer_norm_eps"});
}

void clip_layers(Builder& b) {
  b.each_layer("encoder.layers.{}.", [&] {
    b.norm("layer_norm1", "attention input");
    const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
    b.writes("attention out", "self_attn.out_proj", attended);
    b.norm("layer_norm2", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "mlp.fc1");
    b.writes("mlp out", "mlp.fc2", inner);
  });
}

// A learned query pools the tokens: keys and values read their norm.
void pooling_head(Builder& b) {
  const std::uint64_t width = b.width();
  b.other("head.probe");
  b.reads_part("pooling key and value", "head.attention.in_proj_weight", width, 2 * width);
  b.new_stream();
  b.writes("pooling out", "head.attention.out_proj");
  b.norm("head.layernorm", "pooling mlp input");
  const std::uint64_t inner = b.reads("mlp in", "head.mlp.fc1");
  b.writes("mlp out", "head.mlp.fc2", inner);
}

}  // namespace

ClipFamily clip_family(const Builder& b) {
  const std::string type = b.model_type();
  if (!type.empty()) return type.starts_with("siglip") ? ClipFamily::siglip : ClipFamily::clip;
  return b.has("text_model.head.") || b.has("vision_model.head.") ? ClipFamily::siglip : ClipFamily::clip;
}

void clip_vision_tower(Builder& b, ClipFamily family) {
  clip_norms(b, family);
  b.new_stream();
  b.stack("vision");
  b.within("vision_model.", [&] {
    b.buffer("embeddings.position_ids");
    b.embedding("class token", "embeddings.class_embedding", Need::optional);
    b.input_map("patch embedding", "embeddings.patch_embedding");
    b.embedding("position embedding", "embeddings.position_embedding");
    if (b.has("pre_layrnorm.")) b.norm("pre_layrnorm", "embedding", Placement::post);
    clip_layers(b);
    b.norm("post_layernorm", "final");
    if (b.has("head.")) pooling_head(b);
  });
  if (b.has("visual_projection.")) b.reads("projection", "visual_projection");
}

void clip_text_tower(Builder& b, ClipFamily family) {
  clip_norms(b, family);
  b.new_stream();
  b.stack("text");
  b.within("text_model.", [&] {
    b.buffer("embeddings.position_ids");
    b.embedding("token embedding", "embeddings.token_embedding");
    b.embedding("position embedding", "embeddings.position_embedding");
    clip_layers(b);
    b.norm("final_layer_norm", "final");
    if (b.has("head.")) b.reads("projection", "head");
  });
  if (b.has("text_projection.")) b.reads("projection", "text_projection");
}

}  // namespace normscope::models
