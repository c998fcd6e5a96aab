#include <string>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The map of the first version stores every head's query, key and value together, with biases apart.
std::uint64_t disentangled_attention(Builder& b) {
  for (const char* name :
       {"q_bias", "v_bias", "pos_proj.weight", "pos_q_proj.weight", "pos_q_proj.bias", "pos_key_proj.weight",
        "pos_key_proj.bias", "pos_query_proj.weight", "pos_query_proj.bias"}) {
    b.other(std::string("attention.self.") + name);
  }
  if (b.has("attention.self.in_proj.")) return b.attention_fused_per_head("attention.self.in_proj");
  return b.attention("attention.self.query_proj", "attention.self.key_proj", "attention.self.value_proj");
}

// A convolution of the embeddings, added to the first layer's output.
void convolution(Builder& b) {
  b.where("encoder.conv.", [&] {
    b.partial_input("conv.");
    b.norm("LayerNorm", "convolution output");
  });
}

void language_model(Builder& b, const char* dense, const char* norm) {
  const std::uint64_t width = b.reads("prediction transform", dense);
  b.norm_inside(norm, "final", width);
  b.unembedding({"decoder"}, true, true, "bias");
}

void deberta_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-7, .eps_key = "layer_norm_eps"});
  b.scores_not_modelled("relative_attention");
  b.buffer("embeddings.position_ids");
  b.embedding("token embedding", "embeddings.word_embeddings");
  b.embedding("position embedding", "embeddings.position_embeddings", Need::optional);
  b.embedding("token type embedding", "embeddings.token_type_embeddings", Need::optional);
  b.norm("embeddings.LayerNorm", "embedding");
  if (b.has("encoder.conv.")) b.reads_are_indirect();
  b.other("encoder.rel_embeddings.weight");
  b.other("encoder.LayerNorm.weight");
  b.other("encoder.LayerNorm.bias");
  if (b.has("encoder.LayerNorm.")) {
    b.note("encoder.LayerNorm normalizes the table of relative positions; it is no norm of the stream");
  }
  bool is_first = true;
  b.each_layer("encoder.layer.{}.", [&] {
    const std::uint64_t attended = disentangled_attention(b);
    b.writes("attention out", "attention.output.dense", attended);
    b.norm("attention.output.LayerNorm", "attention output");
    const std::uint64_t inner = b.reads("mlp in", "intermediate.dense");
    b.writes("mlp out", "output.dense", inner);
    b.norm("output.LayerNorm", "mlp output");
    if (is_first) convolution(b);
    is_first = false;
  });
  b.where("pooler.dense", [&] { b.reads("pooler", "", 0, Need::optional); });
  b.where("cls.predictions.", [&] { language_model(b, "transform.dense", "transform.LayerNorm"); });
  b.where("lm_predictions.lm_head.", [&] { language_model(b, "dense", "LayerNorm"); });
}

}  // namespace

extern const Architecture deberta = {
    .name = "deberta",
    .title = "DeBERTa",
    .model_types = {"deberta", "deberta-v2"},
    .signature = {"encoder.layer.{}.attention.output.LayerNorm.", "encoder.layer.{}.output.LayerNorm.",
                  "encoder.rel_embeddings."},
    .without = {},
    .describe = deberta_forward,
    .harmless = {"conv_act", "conv_kernel_size", "legacy", "max_relative_positions", "norm_rel_ebd",
                 "padding_idx", "pos_att_type", "position_biased_input", "position_buckets",
                 "relative_attention", "share_att_key", "attention_head_size"},
};

}  // namespace normscope::models::architectures
