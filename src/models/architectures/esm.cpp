#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void esm_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  if (b.config().text({"position_embedding_type"}).value_or("absolute") != "absolute") {
    b.scores_not_modelled("rotary positions without a causal mask");
  }
  b.buffer("embeddings.position_ids");
  b.buffer("encoder.layer.*.attention.self.rotary_embeddings.inv_freq");
  b.embedding("token embedding", "embeddings.word_embeddings");
  // Embeddings are then rescaled by the share of masked tokens.
  if (b.config().flag({"token_dropout"}).value_or(false)) b.writes_are_indirect();
  b.embedding("position embedding", "embeddings.position_embeddings", Need::optional);
  if (b.has("embeddings.layer_norm.")) b.norm("embeddings.layer_norm", "embedding", Placement::post);
  b.each_layer("encoder.layer.{}.", [&] {
    b.norm("attention.LayerNorm", "attention input");
    const std::uint64_t attended =
        b.attention("attention.self.query", "attention.self.key", "attention.self.value");
    b.buffer("attention.self.rotary_embeddings.inv_freq");
    b.writes("attention out", "attention.output.dense", attended);
    b.norm("LayerNorm", "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "intermediate.dense");
    b.writes("mlp out", "output.dense", inner);
  });
  b.norm("encoder.emb_layer_norm_after", "final");
  b.reads("pooler", "pooler.dense", 0, Need::optional);
  b.where("contact_head.", [&] {  // reads the attention probabilities
    b.other("regression.weight");
    b.other("regression.bias");
  });
  b.where("lm_head.", [&] {
    const std::uint64_t width = b.reads("prediction transform", "dense");
    b.norm_inside("layer_norm", "final", width);
    b.unembedding({"decoder"}, true, true, "bias");
  });
}

}  // namespace

extern const Architecture esm = {
    .name = "esm",
    .title = "ESM-2",
    .model_types = {"esm"},
    .signature = {"encoder.layer.{}.attention.LayerNorm.", "encoder.layer.{}.attention.self.query.",
                  "encoder.emb_layer_norm_after."},
    .without = {},
    .describe = esm_forward,
    .harmless = {"emb_layer_norm_before", "is_folding_model", "esmfold_config", "vocab_list", "rope*",
                 "token_dropout"},
};

}  // namespace normscope::models::architectures
