#include <cstdint>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// BERT with a Fourier transform of the norm's output, over positions and features, in place of attention.
void fnet_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  b.note("it has no attention: a Fourier transform mixes the positions");
  b.buffer("embeddings.position_ids");
  b.embedding("token embedding", "embeddings.word_embeddings");
  b.embedding("position embedding", "embeddings.position_embeddings");
  b.embedding("token type embedding", "embeddings.token_type_embeddings");
  b.norm("embeddings.LayerNorm", "embedding");
  b.leads_over("embedding projection", "embeddings.projection", b.width());
  b.each_layer("encoder.layer.{}.", [&] {
    b.has_other_readers();
    b.writes_are_indirect();
    b.norm("fourier.output.LayerNorm", "mixer output");
    const std::uint64_t inner = b.reads("mlp in", "intermediate.dense");
    b.writes("mlp out", "output.dense", inner);
    b.norm("output.LayerNorm", "mlp output");
  });
  b.reads("pooler", "pooler.dense", 0, Need::optional);
  b.where("cls.seq_relationship.", [&] {  // reads the pooler
    b.other("weight");
    b.other("bias");
  });
  b.where("cls.predictions.", [&] {
    const std::uint64_t width = b.reads("prediction transform", "transform.dense");
    b.norm_inside("transform.LayerNorm", "final", width);
    b.unembedding({"decoder"}, true, true, "bias");
  });
}

}  // namespace

extern const Architecture fnet = {
    .name = "fnet",
    .title = "FNet",
    .model_types = {"fnet"},
    .signature = {"encoder.layer.{}.fourier.output.LayerNorm.", "encoder.layer.{}.output.LayerNorm.",
                  "embeddings.projection."},
    .without = {},
    .describe = fnet_forward,
    .harmless = {"tpu_short_seq_length", "use_tpu_fourier_optimizations"},
};

}  // namespace normscope::models::architectures
