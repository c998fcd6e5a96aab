#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void dinov2_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-6, .eps_key = "layer_norm_eps"});
  b.embedding("class token", "embeddings.cls_token");
  b.other("embeddings.mask_token");  // of pre-training
  b.embedding("register tokens", "embeddings.register_tokens", Need::optional);
  b.embedding("position embedding", "embeddings.position_embeddings");
  b.input_map("patch embedding", "embeddings.patch_embeddings.projection");
  b.each_layer("encoder.layer.{}.", [&] {
    b.norm("norm1", "attention input");
    const std::uint64_t attended =
        b.attention("attention.attention.query", "attention.attention.key", "attention.attention.value");
    b.writes("attention out", "attention.output.dense", attended);
    branch_scale(b, "layer_scale1.lambda1");
    b.norm("norm2", "mlp input");
    if (b.has("mlp.weights_in.")) {
      const std::uint64_t inner = b.reads_parts({"mlp gate", "mlp in"}, "mlp.weights_in");
      b.writes("mlp out", "mlp.weights_out", inner);
    } else {
      const std::uint64_t inner = b.reads("mlp in", "mlp.fc1");
      b.writes("mlp out", "mlp.fc2", inner);
    }
    branch_scale(b, "layer_scale2.lambda1");
  });
  b.norm("layernorm", "final");
  // The classifier reads the class token beside the mean of the patches.
  b.where("classifier.", [&] {
    b.other("weight");
    b.other("bias");
    b.reads_are_indirect();
  });
}

}  // namespace

extern const Architecture dinov2 = {
    .name = "dinov2",
    .title = "DINOv2",
    .model_types = {"dinov2", "dinov2_with_registers"},
    .signature = {"encoder.layer.{}.layer_scale1.", "encoder.layer.{}.attention.attention.query."},
    .without = {},
    .describe = dinov2_forward,
    .tower = Tower::vision,
    .harmless = {"apply_layernorm", "layerscale_value", "out_features", "out_indices", "stage_names",
                 "reshape_hidden_states", "use_mask_token", "use_swiglu_ffn", "num_register_tokens"},
};

}  // namespace normscope::models::architectures
