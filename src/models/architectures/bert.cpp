#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The masked-language head: a dense layer, an activation, a norm and the map to the vocabulary.
void language_head(Builder& b, const char* dense, const char* norm) {
  const std::uint64_t width = b.reads("prediction transform", dense);
  b.norm_inside(norm, "final", width);
  b.unembedding({"decoder"}, true, true, "bias");
}

// Positions of RoBERTa's kind begin behind the padding token's, which is not counted, and its language head
// has a GELU whatever the configuration says of the MLPs.
void encoder(Builder& b) {
  if (b.config().flag({"is_decoder"}).value_or(false)) return;
  DecoderStyle style{.activation = "gelu", .encodes = true};
  const std::string type = b.model_type();
  // An embedding of the task, of places on a page or in a table, or of how characters look and sound is
  // added.
  if (type == "ernie" || type == "layoutlm" || type == "roc_bert" || type == "tapas") return;
  if (!type.empty() && type != "bert" && type != "dpr") {
    const bool stated = b.config().has({"pad_token_id"});
    style.padding = b.config().positions({"pad_token_id"}).value_or(stated ? 0 : 1);
    style.first_position = *style.padding + 1;
    style.head_activation = Activation::gelu;
  }
  if (!type.empty()) b.decoder(style);
}

// RoCBERT: a map of embeddings side by side begins the stream. Without it shape and sound are added behind
// the norm, which is not modelled.
void mapped_inputs(Builder& b) {
  b.ignores({"concat_input"});
  for (const char* const table : {"embeddings.shape_embed.weight", "embeddings.pronunciation_embed.weight"}) {
    if (b.has(table)) b.other(table);
  }
  b.new_stream();
  b.input_map("input map", "embeddings.map_inputs_layer");
}

void bert_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  encoder(b);
  b.buffer("embeddings.position_ids");
  b.buffer("embeddings.token_type_ids");
  b.embedding("token embedding", "embeddings.word_embeddings");
  if (b.has("embeddings.map_inputs_layer.")) mapped_inputs(b);
  for (const char* const side : {"x", "y", "h", "w"}) {
    b.embedding(fmt::format("{} of place embedding", side),
                fmt::format("embeddings.{}_position_embeddings", side),
                b.model_type() == "layoutlm" ? Need::required : Need::optional);
  }
  b.embedding("position embedding", "embeddings.position_embeddings");
  b.embedding("token type embedding", "embeddings.token_type_embeddings", Need::optional);
  for (int i = 0; b.has(fmt::format("embeddings.token_type_embeddings_{}.", i)); ++i) {
    b.embedding(fmt::format("token type embedding {}", i),
                fmt::format("embeddings.token_type_embeddings_{}", i));
  }
  b.embedding("task type embedding", "embeddings.task_type_embeddings", Need::optional);
  b.norm("embeddings.LayerNorm", "embedding");
  bert_layers(b);
  b.where("output_weights", [&] { b.has_other_readers(); });  // TAPAS' answers
  b.reads("pooler", "pooler.dense", 0, Need::optional);
  b.where("aggregation_classifier.", [&] {
    b.other("weight");
    b.other("bias");
  });
  b.where("encode_proj", [&] { b.reads("projection", ""); });  // DPR's, of the first token
  b.where("cls.seq_relationship.", [&] {                       // reads the pooler
    b.other("weight");
    b.other("bias");
  });
  b.where("cls.predictions.", [&] { language_head(b, "transform.dense", "transform.LayerNorm"); });
  b.where("lm_head.", [&] { language_head(b, "dense", "layer_norm"); });
}

}  // namespace

extern const Architecture bert = {
    .name = "bert",
    .title = "BERT, RoBERTa or MiniLM",
    .model_types = {"bert", "roberta", "xlm-roberta", "camembert", "ernie", "data2vec-text", "layoutlm",
                    "roc_bert", "dpr", "tapas"},
    .signature = {"encoder.layer.{}.attention.output.LayerNorm.", "encoder.layer.{}.output.LayerNorm."},
    .without = {},
    .describe = bert_forward,
    .harmless = {"task_type_vocab_size", "use_task_id", "max_2d_position_embeddings", "enable_*", "shape_*",
                 "pronunciation_*", "projection_dim",
                 // of TAPAS's answers, and of its positions
                 "type_vocab_sizes", "*aggregation_*", "*answer_*", "*_loss*", "*cell_selection*",
                 "*_column_selection", "select_one_column", "average_approximation_function",
                 "average_logits_per_cell", "max_num_*", "positive_label_weight",
                 "reset_position_index_per_cell", "use_gumbel_*"},
    .in_llama_cpp = "gguf_bert",
};

}  // namespace normscope::models::architectures
