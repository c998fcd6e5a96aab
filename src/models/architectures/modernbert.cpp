#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The norm of the embeddings is what the stream begins with, and what the first attention reads.
void modernbert_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "norm_eps"});
  b.scores_not_modelled("rotary positions without a causal mask");
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {"mlp_bias"});
  b.biases_by(Biased::norms, {"norm_bias"});
  b.embedding("token embedding", "embeddings.tok_embeddings");
  b.norm("embeddings.norm", "embedding", Placement::post);
  b.each_layer("layers.{}.", [&] {
    if (b.has("attn_norm.")) b.norm("attn_norm", "attention input");
    const std::uint64_t attended = b.fused_attention("attn.Wqkv");
    b.buffer("attn.rotary_emb.inv_freq");
    b.writes("attention out", "attn.Wo", attended);
    b.norm("mlp_norm", "mlp input");
    const std::uint64_t both = b.reads("mlp in and gate", "mlp.Wi");
    b.writes("mlp out", "mlp.Wo", both / 2);
  });
  b.norm("final_norm", "final");
  b.where("head.", [&] {
    const std::uint64_t width = b.reads("prediction transform", "dense");
    b.norm_inside("norm", "final", width);
    b.unembedding({"decoder"}, true);
  });
}

}  // namespace

extern const Architecture modernbert = {
    .name = "modernbert",
    .title = "ModernBERT",
    .model_types = {"modernbert"},
    .signature = {"layers.{}.attn.Wqkv.", "layers.{}.mlp_norm."},
    .without = {},
    .describe = modernbert_forward,
    .harmless = {"local_attention", "global_attn_every_n_layers", "layer_types", "rope*", "*_rope_theta",
                 "deterministic_flash_attn", "decoder_bias", "sparse_pred*", "repad_logits_with_grad",
                 "reference_compile"},
};

}  // namespace normscope::models::architectures
