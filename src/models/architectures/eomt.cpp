#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

constexpr double kUpscaleEps = 1e-6;  // whatever the configuration says

void eomt_block(Builder& b) {
  b.norm("norm1", "attention input");
  const std::uint64_t attended = b.attention("attention.q_proj", "attention.k_proj", "attention.v_proj");
  b.writes("attention out", b.has("attention.o_proj.") ? "attention.o_proj" : "attention.out_proj", attended);
  branch_scale(b, "layer_scale1.lambda1");
  b.norm("norm2", "mlp input");
  if (b.has("mlp.gate_proj.")) {
    gated_mlp(b, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
  } else {
    const bool first = b.has("mlp.fc1.");
    const std::uint64_t inner = b.reads("mlp in", first ? "mlp.fc1" : "mlp.up_proj");
    b.writes("mlp out", first ? "mlp.fc2" : "mlp.down_proj", inner);
  }
  branch_scale(b, "layer_scale2.lambda1");
}

// DINOv2 or DINOv3 whose last blocks have learned queries beside the patches. The outputs of queries, as
// classes and masks, and those of patches, doubled in both directions, make the masks.
void eomt_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-6, .eps_key = "layer_norm_eps"});
  const bool turns = b.model_type() == "eomt_dinov3";
  if (turns) b.scores_not_modelled("rotation by row and column");
  const bool masks = !b.buffer_of_zeros("attn_mask_probs");
  b.other("criterion.empty_weight");  // of training
  b.embedding("class token", "embeddings.cls_token");
  b.embedding("register tokens", "embeddings.register_tokens", Need::optional);
  b.embedding("position embedding", "embeddings.position_embeddings", Need::optional);
  b.input_map("patch embedding", b.has("embeddings.patch_embeddings.projection.")
                                     ? "embeddings.patch_embeddings.projection"
                                     : "embeddings.patch_embeddings");
  const auto count = [&](const char* key, std::uint64_t published) {
    return static_cast<int>(b.config().count({key}).value_or(published));
  };
  const int first = count("num_hidden_layers", 24) - count("num_blocks", 4);
  b.each_layer("layers.{}.", [&] {
    if (b.layer() == first) {
      b.where("query", [&] { b.embedding("query", ""); });
      if (masks) b.scores_not_modelled("masks of the queries, which each of the last blocks predicts");
    }
    eomt_block(b);
  });
  b.norm("layernorm", "final");
  b.reads("classifier", "class_predictor");
  b.reads("mask head", "mask_head.fc1");
  b.reads_are_indirect();  // a convolution of the patches
  for (const char* const tensor : {"fc2.weight", "fc2.bias", "fc3.weight", "fc3.bias"}) {
    b.where("mask_head.", [&] { b.other(tensor); });
  }
  b.new_stream();
  b.each_part("upscale_block.block.{}.", [&] {
    b.other("conv1.weight");
    b.other("conv1.bias");
    b.norm_of_outputs("layernorm2d", "upscaled", {.role = "upscaling", .map = "conv2"});
    b.last_eps(kUpscaleEps, {});
    b.reads_are_indirect();
  });
}

}  // namespace

extern const Architecture eomt = {
    .name = "eomt",
    .title = "EoMT",
    .model_types = {"eomt", "eomt_dinov3"},
    .signature = {"layers.{}.layer_scale1.", "layers.{}.attention.q_proj.", "upscale_block.block.{}."},
    .without = {},
    .describe = eomt_forward,
    .tower = Tower::vision,
    .harmless = {"layerscale_value", "num_upscale_blocks", "num_blocks", "num_queries", "num_register_tokens",
                 "use_swiglu_ffn", "no_object_weight", "class_weight", "mask_weight", "dice_weight",
                 "train_num_points", "oversample_ratio", "importance_sample_ratio", "pos_embed_*",
                 "query_bias", "key_bias", "value_bias", "proj_bias", "use_gated_mlp"},
};

}  // namespace normscope::models::architectures
