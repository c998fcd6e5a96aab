#include <string>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The names of the norms, and of the masked-language head.
struct PreNormNames {
  const char* attention;
  const char* mlp;
  const char* last;
};

PreNormNames pre_norm_names(const Builder& b) {
  if (b.has("encoder.layer.0.attention.ln.")) return {"attention.ln", "ln", "encoder.ln"};
  if (b.has("encoder.layer.0.attention.self_attn_layer_norm.")) {
    return {"attention.self_attn_layer_norm", "LayerNorm", "encoder.LayerNorm"};
  }
  return {"attention.LayerNorm", "intermediate.LayerNorm", "LayerNorm"};
}

void language_head_of_pre_norm(Builder& b, const char* dense, const char* norm) {
  const std::uint64_t width = b.reads("prediction transform", dense);
  b.norm_inside(norm, "final", width);
  b.unembedding({"decoder"}, true, true, "bias");
}

// BERT with norms before its branches.
void megatron_bert_forward(Builder& b) {
  const PreNormNames names = pre_norm_names(b);
  b.norms({.kind = NormKind::layer,
           .placement = Placement::pre,
           .eps = b.model_type() == "xlm-roberta-xl" ? 1e-5 : 1e-12,
           .eps_key = "layer_norm_eps"});
  b.buffer("embeddings.position_ids");
  b.embedding("token embedding", "embeddings.word_embeddings");
  b.embedding("position embedding", "embeddings.position_embeddings");
  b.embedding("token type embedding", "embeddings.token_type_embeddings", Need::optional);
  if (b.has("embeddings.LayerNorm.")) b.norm("embeddings.LayerNorm", "embedding", Placement::post);
  b.each_layer("encoder.layer.{}.", [&] {
    b.norm(names.attention, "attention input");
    const std::uint64_t attended =
        b.attention("attention.self.query", "attention.self.key", "attention.self.value");
    b.writes("attention out", "attention.output.dense", attended);
    b.norm(names.mlp, "mlp input");
    const std::uint64_t inner = b.reads("mlp in", "intermediate.dense");
    b.writes("mlp out", "output.dense", inner);
  });
  b.norm(names.last, "final");
  b.reads("pooler", "pooler.dense", 0, Need::optional);
  b.where("cls.seq_relationship.", [&] {  // reads the pooler
    b.other("weight");
    b.other("bias");
  });
  b.where("cls.predictions.",
          [&] { language_head_of_pre_norm(b, "transform.dense", "transform.LayerNorm"); });
  b.where("lm_head.", [&] { language_head_of_pre_norm(b, "dense", "layer_norm"); });
}

}  // namespace

extern const Architecture megatron_bert = {
    .name = "megatron_bert",
    .title = "Megatron-BERT, XLM-RoBERTa-XL or another BERT with norms before its branches",
    .model_types = {"megatron-bert", "xlm-roberta-xl", "roberta-prelayernorm"},
    .signature = {"encoder.layer.{}.attention.self.query.", "encoder.layer.{}.intermediate.dense."},
    .without = {},
    .describe = megatron_bert_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
