#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// BERT's blocks in names of its own, with a bias of the scores by distance.
void mpnet_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  b.scores_not_modelled("relative_attention_bias");
  b.buffer("embeddings.position_ids");
  b.embedding("token embedding", "embeddings.word_embeddings");
  b.embedding("position embedding", "embeddings.position_embeddings");
  b.norm("embeddings.LayerNorm", "embedding");
  b.other("encoder.relative_attention_bias.weight");
  b.each_layer("encoder.layer.{}.", [&] {
    const std::uint64_t attended = b.attention("attention.attn.q", "attention.attn.k", "attention.attn.v");
    b.writes("attention out", "attention.attn.o", attended);
    b.norm("attention.LayerNorm", "attention output");
    const std::uint64_t inner = b.reads("mlp in", "intermediate.dense");
    b.writes("mlp out", "output.dense", inner);
    b.norm("output.LayerNorm", "mlp output");
  });
  b.reads("pooler", "pooler.dense", 0, Need::optional);
  b.where("lm_head.", [&] {
    const std::uint64_t width = b.reads("prediction transform", "dense");
    b.norm_inside("layer_norm", "final", width);
    b.unembedding({"decoder"}, true, true, "bias");
  });
}

}  // namespace

extern const Architecture mpnet = {
    .name = "mpnet",
    .title = "MPNet",
    .model_types = {"mpnet"},
    .signature = {"encoder.layer.{}.attention.attn.q.", "encoder.layer.{}.attention.LayerNorm."},
    .without = {},
    .describe = mpnet_forward,
    .harmless = {"relative_attention*"},
};

}  // namespace normscope::models::architectures
