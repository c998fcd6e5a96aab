#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void distilbert_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-12, .eps_key = ""});
  b.decoder({.activation = "gelu", .encodes = true});
  b.buffer("embeddings.position_ids");
  b.embedding("token embedding", "embeddings.word_embeddings");
  b.embedding("position embedding", "embeddings.position_embeddings");
  b.norm("embeddings.LayerNorm", "embedding");
  b.each_layer("transformer.layer.{}.", [&] {
    const std::uint64_t attended = b.attention("attention.q_lin", "attention.k_lin", "attention.v_lin");
    b.writes("attention out", "attention.out_lin", attended);
    b.norm("sa_layer_norm", "attention output");
    const std::uint64_t inner = b.reads("mlp in", "ffn.lin1");
    b.writes("mlp out", "ffn.lin2", inner);
    b.norm("output_layer_norm", "mlp output");
  });
  b.where("pre_classifier", [&] { b.reads("classifier transform", "", 0, Need::optional); });
  b.where("vocab_", [&] {
    const std::uint64_t width = b.reads("prediction transform", "transform");
    b.norm_inside("layer_norm", "final", width);
    b.unembedding({"projector"}, true);
  });
}

}  // namespace

extern const Architecture distilbert = {
    .name = "distilbert",
    .title = "DistilBERT",
    .model_types = {"distilbert"},
    .signature = {"transformer.layer.{}.sa_layer_norm.", "transformer.layer.{}.attention.q_lin."},
    .without = {},
    .describe = distilbert_forward,
    .harmless = {"dim", "hidden_dim", "activation", "sinusoidal_pos_embds", "tie_weights_"},
};

}  // namespace normscope::models::architectures
