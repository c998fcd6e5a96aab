#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The converter leaves out the pooler and the language head, and of RoBERTa's kind the positions that no
// token has.
void gguf_bert_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-12});
  const bool nomic = b.model_type() == "nomic-bert";
  if (nomic) {
    b.decoder({.activation = "silu", .fixed_activation = true, .encodes = true});
    b.rotary({.theta = 1000.0, .dims = gguf_rotary_dims(b)});
    b.scores_not_modelled("rotary positions without a causal mask");
  } else {
    gguf_exact_gelu(b, true);
  }
  b.embedding("token embedding", "token_embd");
  if (!nomic) b.embedding("position embedding", "position_embd");
  b.embedding("token type embedding", "token_types", Need::optional);
  b.norm("token_embd_norm", "embedding");
  b.each_layer("blk.{}.", [&] {
    gguf_attention(b);
    b.norm("attn_output_norm", "attention output");
    nomic ? gguf_gated_mlp(b) : gguf_plain_mlp(b);
    b.norm("layer_output_norm", "mlp output");
  });
}

}  // namespace

extern const Architecture gguf_bert = {
    .name = "gguf_bert",
    .title = "BERT or NomicBERT in llama.cpp's names",
    .model_types = {"bert", "nomic-bert"},
    .signature = {"blk.{}.attn_output_norm.", "blk.{}.layer_output_norm."},
    .without = {},
    .describe = gguf_bert_forward,
    .harmless = {"is_causal", "pooling_type"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
