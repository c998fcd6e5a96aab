#include <algorithm>
#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// A part of ConvBERT's heads, as many as a convolution in their place has, are left out.
void convbert_heads(Builder& b) {
  HeadCounts& heads = b.heads();
  const std::uint64_t ratio = b.config().count({"head_ratio"}).value_or(2);
  if (heads.heads == 0) return;
  heads.heads = std::max<std::uint64_t>(heads.heads / ratio, 1);
  heads.head_dim = b.width() / heads.heads / 2;
}

// BERT over embeddings that may be narrower, with a generator's or a discriminator's head.
void electra_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  b.buffer("embeddings.position_ids");
  const std::uint64_t width = b.width();
  if (b.model_type() == "convbert" || b.has("encoder.layer.0.attention.self.conv_out_layer."))
    convbert_heads(b);
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
    .title = "ELECTRA or ConvBERT",
    .model_types = {"electra", "convbert"},
    .signature = {"encoder.layer.{}.attention.output.LayerNorm.", "encoder.layer.{}.output.LayerNorm.",
                  "embeddings_project."},
    .without = {},
    .describe = electra_forward,
    .harmless = {"conv_kernel_size", "num_groups"},
};

}  // namespace normscope::models::architectures
