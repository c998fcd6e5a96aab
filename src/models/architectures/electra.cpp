#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// BERT over embeddings that may be narrower, with a generator's or a discriminator's head.
void electra_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  b.buffer("embeddings.position_ids");
  const std::uint64_t width = b.width();
  const bool projects = b.has("embeddings_project.");
  if (projects) b.stream(0);
  b.embedding("token embedding", "embeddings.word_embeddings");
  b.embedding("position embedding", "embeddings.position_embeddings");
  b.embedding("token type embedding", "embeddings.token_type_embeddings", Need::optional);
  b.norm("embeddings.LayerNorm", "embedding");
  if (projects) b.leads_over("embedding projection", "embeddings_project", width);
  bert_layers(b);
  b.where("discriminator_predictions.", [&] {
    b.reads("prediction transform", "dense");
    b.other("dense_prediction.weight");
    b.other("dense_prediction.bias");
  });
  b.where("generator_predictions.", [&] {
    const std::uint64_t inner = b.reads("prediction transform", "dense");
    b.norm_inside("LayerNorm", "final", inner);
    b.unembedding({"generator_lm_head"}, true);
  });
}

}  // namespace

extern const Architecture electra = {
    .name = "electra",
    .title = "ELECTRA",
    .model_types = {"electra"},
    .signature = {"encoder.layer.{}.attention.output.LayerNorm.", "encoder.layer.{}.output.LayerNorm.",
                  "embeddings_project."},
    .without = {},
    .describe = electra_forward,
};

}  // namespace normscope::models::architectures
