#include <cstdint>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// ModernBERT with a causal mask. The first attention reads the norm of the embeddings.
void modernbert_decoder_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "norm_eps"});
  b.rotary({.theta = 160'000.0,
            .has_local_theta = true,
            .theta_key = "global_rope_theta",
            .local_theta_key = "local_rope_theta"});
  // Versions of transformers differ in which layers it concerns.
  if (b.config().has({"rope_scaling"})) b.scores_not_modelled("rope_scaling");
  b.windows({.period = 3, .first_is_full = true});
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {"mlp_bias"});
  b.biases_by(Biased::norms, {"norm_bias"});
  b.embedding("token embedding", "embeddings.tok_embeddings");
  b.norm("embeddings.norm", "embedding", Placement::post);
  b.each_layer("layers.{}.", [&] {
    if (b.has("attn_norm.")) b.norm("attn_norm", "attention input");
    const std::uint64_t attended = b.attention("attn.q_proj", "attn.k_proj", "attn.v_proj");
    b.writes("attention out", "attn.Wo", attended);
    b.norm("mlp_norm", "mlp input");
    const std::uint64_t both = b.reads("mlp in and gate", "mlp.Wi");
    b.writes("mlp out", "mlp.Wo", both / 2);
  });
  b.norm("final_norm", "final");
  b.where("lm_head.", [&] {
    const std::uint64_t width = b.reads("prediction transform", "dense");
    b.norm_inside("norm", "final", width);
  });
  b.unembedding({"decoder"}, true, true, "decoder.bias");
}

}  // namespace

extern const Architecture modernbert_decoder = {
    .name = "modernbert_decoder",
    .title = "ModernBERT decoder",
    .model_types = {"modernbert-decoder"},
    .signature = {"layers.{}.attn.q_proj.", "layers.{}.mlp_norm.", "layers.{}.mlp.Wi."},
    .without = {},
    .describe = modernbert_decoder_forward,
    .harmless = {"local_attention", "global_attn_every_n_layers", "decoder_bias", "classifier_activation"},
};

}  // namespace normscope::models::architectures
