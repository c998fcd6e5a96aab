#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Its files state fields of the code that they were published with; at these values it does what follows.
void older_fields(const Builder& b) {
  for (const char* const field :
       {"causal", "mlp_fc1_bias", "mlp_fc2_bias", "parallel_block", "parallel_block_tied_norm", "prenorm",
        "qkv_proj_bias", "rotary_emb_interleaved", "use_rms_norm"}) {
    b.ignores_value(field, "false");
  }
  b.ignores_value("activation_function", "\"swiglu\"");
  b.ignores_value("rotary_emb_fraction", "1.0");
}

// BERT with rotary positions, and NomicBERT's gated MLP. Jina 3 has RoBERTa's head.
void nomic_bert_forward(Builder& b) {
  const bool is_jina = b.has("encoder.layers.0.mixer.");
  if (b.model_type() == "nomic_bert") {
    b.biases_by(Biased::attention, {});
    b.biases_by(Biased::mlps, {});
  }
  b.norms({.kind = NormKind::layer,
           .placement = Placement::post,
           .eps = is_jina ? 1e-5 : 1e-12,
           .eps_key = "layer_norm_eps"});
  if (!is_jina) older_fields(b);
  if (!is_jina) b.decoder({.activation = "silu", .encodes = true});
  b.rotary({.theta = is_jina ? 20000.0 : 1000.0});
  b.scores_not_modelled("rotary positions without a causal mask");
  b.embedding("token embedding", "embeddings.word_embeddings");
  b.embedding("token type embedding", "embeddings.token_type_embeddings", Need::optional);
  b.norm("emb_ln", "embedding");
  b.each_layer("encoder.layers.{}.", [&] {
    b.within(is_jina ? "mixer." : "attn.", [&] {
      const std::uint64_t attended = b.fused_attention("Wqkv");
      b.writes("attention out", "out_proj", attended);
    });
    b.norm("norm1", "attention output");
    if (is_jina) {
      const std::uint64_t inner = b.reads("mlp in", "mlp.fc1");
      b.writes("mlp out", "mlp.fc2", inner);
    } else {
      gated_mlp(b, "mlp.fc12", "mlp.fc11", "mlp.fc2");
    }
    b.norm("norm2", "mlp output");
  });
  b.reads("pooler", "pooler.dense", 0, Need::optional);
  b.where("lm_head.", [&] {
    const std::uint64_t width = b.reads("prediction transform", "dense");
    b.norm_inside("layer_norm", "final", width);
    b.unembedding({"decoder"}, true, true, "bias");
  });
}

}  // namespace

extern const Architecture nomic_bert = {
    .name = "nomic_bert",
    .title = "NomicBERT or Jina 3",
    .model_types = {"nomic_bert", "jina_embeddings_v3"},
    .signature = {"encoder.layers.{}.norm1.", "encoder.layers.{}.attn.Wqkv.", "encoder.layers.{}.mlp.fc12.",
                  "emb_ln."},
    .without = {},
    .describe = nomic_bert_forward,
    // auto_map: NomicBERT was published with code of its own before it was part of transformers
    .harmless = {"auto_map", "dense_seq_output", "fused_*", "last_layer_subset", "max_trained_positions",
                 "pad_vocab_size_multiple", "use_xentropy"},
    .in_llama_cpp = "gguf_bert",
};

}  // namespace normscope::models::architectures
