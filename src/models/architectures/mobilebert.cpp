#include <cstdint>
#include <string>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Gain and bias under the name of a norm.
void multiply_and_add(Builder& b, const std::string& name) {
  b.other(name + ".weight");
  b.other(name + ".bias");
}

// A narrow stream inside a wide one. What stands in the place of norms multiplies and adds, so no head reads
// a norm.
void mobilebert_layer(Builder& b, std::uint64_t inner) {
  b.reads_the_stream();
  for (const char* name :
       {"bottleneck.input", "bottleneck.attention", "attention.output", "output", "output.bottleneck"}) {
    multiply_and_add(b, std::string(name) + ".LayerNorm");
    multiply_and_add(b, std::string(name) + ".dense");
  }
  b.each_part("ffn.{}.", [&] {
    multiply_and_add(b, "intermediate.dense");
    multiply_and_add(b, "output.dense");
    multiply_and_add(b, "output.LayerNorm");
  });
  multiply_and_add(b, "intermediate.dense");
  multiply_and_add(b, "attention.self.value");
  const std::uint64_t wide = b.width();
  b.stream(b.config().flag({"key_query_shared_bottleneck"}).value_or(true) ? inner : wide);
  b.attention("attention.self.query", "attention.self.key", "");
  b.stream(wide);
}

// Logits come from a matrix that is put together of the token embedding and of another one.
void mobilebert_head(Builder& b) {
  const std::uint64_t width = b.reads("prediction transform", "transform.dense");
  b.norm_inside("transform.LayerNorm", "final", width);
  b.other("dense.weight");
  b.other("bias");
}

void mobilebert_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  b.note(
      "its encoder has no norms (normalization_type no_norm): parameters named LayerNorm multiply and add");
  if (const auto kind = b.config().text({"normalization_type"}); kind && *kind != "no_norm") {
    b.note("norms of its encoder (normalization_type " + *kind + ") are not described");
    b.scores_not_modelled("normalization_type: " + *kind);
  }
  b.buffer("embeddings.position_ids");
  for (const char* table : {"word_embeddings", "position_embeddings", "token_type_embeddings",
                            "embedding_transformation", "LayerNorm"})
    multiply_and_add(b, std::string("embeddings.") + table);
  const std::uint64_t inner =
      b.config().count({"true_hidden_size", "intra_bottleneck_size"}).value_or(b.width());
  b.each_layer("encoder.layer.{}.", [&] { mobilebert_layer(b, inner); });
  b.where("pooler.dense", [&] { multiply_and_add(b, ""); });
  b.where("cls.seq_relationship", [&] { multiply_and_add(b, ""); });
  b.where("cls.predictions.", [&] { mobilebert_head(b); });
}

}  // namespace

extern const Architecture mobilebert = {
    .name = "mobilebert",
    .title = "MobileBERT",
    .model_types = {"mobilebert"},
    .signature = {"encoder.layer.{}.bottleneck.input.", "encoder.layer.{}.output.bottleneck.",
                  "embeddings.embedding_transformation."},
    .without = {},
    .describe = mobilebert_forward,
    .harmless = {"classifier_activation", "embedding_size", "intra_bottleneck_size",
                 "num_feedforward_networks", "trigram_input", "true_hidden_size", "use_bottleneck",
                 "use_bottleneck_attention"},
};

}  // namespace normscope::models::architectures
