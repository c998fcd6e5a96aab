#include <algorithm>
#include <string>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void albert_layer(Builder& b) {
  const std::uint64_t attended = b.attention("attention.query", "attention.key", "attention.value");
  b.writes("attention out", "attention.dense", attended);
  b.norm("attention.LayerNorm", "attention output");
  const std::uint64_t inner = b.reads("mlp in", "ffn");
  b.writes("mlp out", "ffn_output", inner);
  b.norm("full_layer_layer_norm", "mlp output");
}

void albert_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  b.buffer("embeddings.position_ids");
  const std::uint64_t width = b.width();
  b.stream(0);  // embeddings have a different width
  b.embedding("token embedding", "embeddings.word_embeddings");
  b.embedding("position embedding", "embeddings.position_embeddings");
  b.embedding("token type embedding", "embeddings.token_type_embeddings");
  b.norm("embeddings.LayerNorm", "embedding");
  b.leads_over("embedding projection", "encoder.embedding_hidden_mapping_in", width);

  const std::uint64_t groups = b.config().count({"num_hidden_groups"}).value_or(1);
  const std::uint64_t layers = b.config().count({"num_hidden_layers"}).value_or(groups);
  const std::uint64_t inner_layers = b.config().count({"inner_group_num"}).value_or(1);
  const int times = static_cast<int>(std::max<std::uint64_t>(layers / groups, 1));
  const bool stated = b.config().count({"num_hidden_layers"}).has_value();
  if (!stated) {
    b.note("how often the shared layers are applied is not known: no configuration states num_hidden_layers");
  }
  b.applications(times);
  b.each_layer("encoder.albert_layer_groups.{}.", [&] {
    // Described twice if it is, or may be, applied again: the second application reads what the first wrote.
    for (int pass = 0; pass < (stated ? std::min(times, 2) : 2); ++pass) {
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(inner_layers, 64); ++i) {
        b.within("albert_layers." + std::to_string(i) + ".", [&] { albert_layer(b); });
      }
    }
  });
  b.applications(1);
  b.reads("pooler", "pooler", 0, Need::optional);
  b.where("predictions.", [&] {
    const std::uint64_t inner = b.reads("prediction transform", "dense");
    b.norm_inside("LayerNorm", "final", inner);
    b.unembedding({"decoder"}, true, true, "bias");
  });
}

}  // namespace

extern const Architecture albert = {
    .name = "albert",
    .title = "ALBERT",
    .model_types = {"albert"},
    .signature = {"encoder.albert_layer_groups.{}."},
    .without = {},
    .describe = albert_forward,
    .harmless = {"net_structure_type", "gap_size", "down_scale_factor", "num_memory_blocks"},
};

}  // namespace normscope::models::architectures
