#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void beit_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  b.biases_by(Biased::keys, {});
  b.scores_not_modelled("relative_position_bias");
  b.embedding("class token", "embeddings.cls_token");
  b.embedding("mask token", "embeddings.mask_token", Need::optional);
  b.embedding("position embedding", "embeddings.position_embeddings", Need::optional);
  b.input_map("patch embedding", "embeddings.patch_embeddings.projection");
  b.other("encoder.relative_position_bias.relative_position_bias_table");
  b.each_layer("encoder.layer.{}.", [&] {
    b.norm("layernorm_before", "attention input");
    const std::uint64_t attended =
        b.attention("attention.attention.query", "attention.attention.key", "attention.attention.value");
    b.other("attention.attention.relative_position_bias.relative_position_bias_table");
    b.buffer("attention.attention.relative_position_bias.relative_position_index");
    b.writes("attention out", "attention.output.dense", attended);
    branch_scale(b, "lambda_1");
    b.norm("layernorm_after", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "intermediate.dense");
    b.writes("mlp out", "output.dense", inner);
    branch_scale(b, "lambda_2");
  });
  // The pooler's norm follows the mean over patches; it replaces the norm of the stream.
  b.norm(b.has("pooler.layernorm.") ? "pooler.layernorm" : "layernorm", "final");
  b.where("classifier", [&] { b.reads("classifier", "", 0, Need::optional); });
}

}  // namespace

extern const Architecture beit = {
    .name = "beit",
    .title = "BEiT",
    .model_types = {"beit", "data2vec-vision"},
    .signature = {"encoder.layer.{}.layernorm_before.", "encoder.layer.{}.attention.attention.query.",
                  "encoder.layer.{}.lambda_1"},
    .without = {},
    .describe = beit_forward,
    .tower = Tower::vision,
    .harmless = {"add_fpn", "auxiliary_*", "layer_scale_init_value", "out_features", "out_indices",
                 "pool_scales", "reshape_hidden_states", "semantic_loss_ignore_index", "stage_names",
                 "use_absolute_position_embeddings", "use_auxiliary_head", "use_mask_token",
                 "use_mean_pooling", "use_relative_position_bias", "use_shared_relative_position_bias"},
};

}  // namespace normscope::models::architectures
