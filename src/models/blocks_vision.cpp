// Parts of vision towers that several architectures share.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models {

namespace {

void aimv2_norms(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "rms_norm_eps"});
  b.biases_by(Biased::attention, {"qkv_bias"});
  b.biases_by(Biased::mlps, {"mlp_bias"});
}

void aimv2_layers(Builder& b) {
  b.each_layer("encoder.layers.{}.", [&] {
    b.norm("rms_norm1", "attention input");
    const std::uint64_t attended = b.attention("attention.q_proj", "attention.k_proj", "attention.v_proj");
    b.writes("attention out", "attention.out_proj", attended);
    b.norm("rms_norm2", "mlp input");
    gated_mlp(b, "ffn.gate_proj", "ffn.up_proj", "ffn.down_proj");
  });
  b.norm("rms_norm", "final");
}

}  // namespace

void swin_stages(Builder& b, double eps, const std::function<void()>& block,
                 const std::function<void()>& merge) {
  b.stack("stage 0");
  b.stream(b.config().count({"embed_dim"}).value_or(0));
  b.input_map("patch embedding", "embeddings.patch_embeddings.projection");
  b.norm("embeddings.norm", "embedding", Placement::post);
  b.last_eps(eps, {});
  b.embedding("mask token", "embeddings.mask_token", Need::optional);
  b.embedding("position embedding", "embeddings.position_embeddings", Need::optional);
  const std::optional<std::vector<std::uint64_t>> heads = b.config().counts({"num_heads"});
  b.each_stage("encoder.layers.{}.", [&](std::size_t stage) {
    b.heads() = {.heads = heads && stage < heads->size() ? (*heads)[stage] : 0};
    b.each_layer_of_stage("blocks.{}.", stage, block);
    merge();
  });
  b.norm("layernorm", "final");
  b.reads_are_indirect();  // the mean over positions
  b.where("classifier.", [&] {
    b.other("weight");
    b.other("bias");
  });
}

void llama_encoder_layer(Builder& b) {
  b.norm("input_layernorm", "attention input");
  const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  b.writes("attention out", "self_attn.o_proj", attended);
  branch_scale(b, "gate_attn");
  b.norm("post_attention_layernorm", "mlp input");
  const std::uint64_t inner = b.reads("mlp in", "mlp.fc1");
  b.writes("mlp out", "mlp.fc2", inner);
  branch_scale(b, "gate_ffn");
}

void aimv2_vision_tower(Builder& b) {
  aimv2_norms(b);
  b.stack("vision");
  b.input_map("patch embedding", "embeddings.patch_embed");
  b.norm("embeddings.rms_norm", "embedding", Placement::post);
  b.embedding("position embedding", "embeddings.position_embedding", Need::optional);  // else computed
  aimv2_layers(b);
  if (!b.has("head.")) return;
  // A learned query pools the tokens: keys and values read their norm.
  b.reads("pooling key", "head.k_proj");
  b.reads("pooling value", "head.v_proj");
  b.has_other_readers();  // the tokens are an output too
  for (const char* name : {"head.cls_token", "head.output_proj.weight", "head.output_proj.bias"})
    b.other(name);
}

void aimv2_text_tower(Builder& b) {
  aimv2_norms(b);
  b.stack("text");
  b.buffer("embeddings.position_ids");
  b.embedding("token embedding", "embeddings.token_embedding");
  b.embedding("position embedding", "embeddings.position_embedding");
  aimv2_layers(b);
}

}  // namespace normscope::models
