#include <cstdint>
#include <vector>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Keys have no biases unless the configuration says so, the others unless it says otherwise.
void dinov3_biases(Builder& b) {
  b.biases_by(Biased::keys, {"key_bias"});
  const auto unless_false = [&](const char* field, Biased of) {
    if (!b.config().flag({field}).value_or(true)) b.biases_by(of, {});
  };
  unless_false("query_bias", Biased::queries);
  unless_false("value_bias", Biased::values);
  unless_false("proj_bias", Biased::attention_output);
}

// Patches turn by their place, the class and register tokens do not.
void dinov3_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_eps"});
  dinov3_biases(b);
  b.scores_not_modelled("rotation by row and column");
  b.embedding("class token", "embeddings.cls_token");
  b.other("embeddings.mask_token");  // of pre-training
  if (b.shape("embeddings.register_tokens") == std::vector<std::uint64_t>{1, 0, b.width()}) {
    b.other("embeddings.register_tokens");  // none
  } else {
    b.embedding("register tokens", "embeddings.register_tokens", Need::optional);
  }
  b.input_map("patch embedding", "embeddings.patch_embeddings");
  b.each_layer("layer.{}.", [&] {
    b.norm("norm1", "attention input");
    const std::uint64_t attended = b.attention("attention.q_proj", "attention.k_proj", "attention.v_proj");
    b.writes("attention out", "attention.o_proj", attended);
    branch_scale(b, "layer_scale1.lambda1");
    b.norm("norm2", "mlp input");
    if (b.has("mlp.gate_proj.")) {
      gated_mlp(b, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
    } else {
      const std::uint64_t inner = b.reads("mlp in", "mlp.up_proj");
      b.writes("mlp out", "mlp.down_proj", inner);
    }
    branch_scale(b, "layer_scale2.lambda1");
  });
  b.norm("norm", "final");
}

}  // namespace

extern const Architecture dinov3 = {
    .name = "dinov3",
    .title = "DINOv3",
    .model_types = {"dinov3_vit"},
    .signature = {"layer.{}.layer_scale1.", "layer.{}.attention.q_proj.", "embeddings.patch_embeddings."},
    .without = {},
    .describe = dinov3_forward,
    .tower = Tower::vision,
    .harmless = {"apply_layernorm", "layerscale_value", "out_features", "out_indices", "stage_names",
                 "reshape_hidden_states", "num_register_tokens", "pos_embed_*", "query_bias", "key_bias",
                 "value_bias", "proj_bias", "use_gated_mlp"},
};

}  // namespace normscope::models::architectures
