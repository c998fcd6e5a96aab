#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// BERT with embeddings narrower than the stream, and a head that is wider.
void rembert_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  b.buffer("embeddings.position_ids");
  const std::uint64_t width = b.width();
  b.stream(0);
  b.embedding("token embedding", "embeddings.word_embeddings");
  b.embedding("position embedding", "embeddings.position_embeddings");
  b.embedding("token type embedding", "embeddings.token_type_embeddings");
  b.norm("embeddings.LayerNorm", "embedding");
  b.leads_over("embedding projection", "encoder.embedding_hidden_mapping_in", width);
  bert_layers(b);
  b.reads("pooler", "pooler.dense", 0, Need::optional);
  b.where("cls.predictions.", [&] {
    const std::uint64_t wide = b.reads("prediction transform", "dense");
    b.norm_inside("LayerNorm", "final", wide);
    b.unembedding({"decoder"}, false);
  });
}

}  // namespace

extern const Architecture rembert = {
    .name = "rembert",
    .title = "RemBERT",
    .model_types = {"rembert"},
    .signature = {"encoder.layer.{}.attention.output.LayerNorm.", "encoder.embedding_hidden_mapping_in."},
    .without = {},
    .describe = rembert_forward,
    .harmless = {"input_embedding_size", "output_embedding_size"},
};

}  // namespace normscope::models::architectures
