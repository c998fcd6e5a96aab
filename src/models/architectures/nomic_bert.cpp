#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// BERT with rotary positions and a gated MLP, without biases of its maps.
void nomic_bert_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::post, .eps = 1e-12, .eps_key = "layer_norm_eps"});
  b.decoder({.activation = "silu", .encodes = true});
  b.rotary({.theta = 1000.0});
  b.scores_not_modelled("rotary positions without a causal mask");
  b.embedding("token embedding", "embeddings.word_embeddings");
  b.embedding("token type embedding", "embeddings.token_type_embeddings", Need::optional);
  b.norm("emb_ln", "embedding");
  b.each_layer("encoder.layers.{}.", [&] {
    const std::uint64_t attended = b.fused_attention("attn.Wqkv");
    b.writes("attention out", "attn.out_proj", attended);
    b.norm("norm1", "attention output");
    gated_mlp(b, "mlp.fc12", "mlp.fc11", "mlp.fc2");
    b.norm("norm2", "mlp output");
  });
}

}  // namespace

extern const Architecture nomic_bert = {
    .name = "nomic_bert",
    .title = "NomicBERT",
    .model_types = {"nomic_bert"},
    .signature = {"encoder.layers.{}.attn.Wqkv.", "encoder.layers.{}.mlp.fc12.", "emb_ln."},
    .without = {},
    .describe = nomic_bert_forward,
    .in_llama_cpp = "gguf_bert",
};

}  // namespace normscope::models::architectures
