#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Mistral with experts in place of the MLP. Phi-3.5-MoE has LayerNorms with biases. MiniMax M2 normalizes all
// heads of queries and of keys together, and chooses experts by sigmoids and a stored correction.
void mixtral_layer(Builder& b) {
  llama_attention(b);
  b.norm("post_attention_layernorm", "mlp input");
  b.within("block_sparse_moe.", [&] {
    gated_experts(b, {.gate = "w1", .in = "w3", .out = "w2"});
    router_correction(b, "e_score_correction_bias");
  });
}

void mixtral_forward(Builder& b) {
  const bool phi = b.model_type() == "phimoe";
  const bool minimax = b.model_type() == "minimax_m2";
  b.norms({.kind = phi ? NormKind::layer : NormKind::rms,
           .placement = Placement::pre,
           .eps = minimax ? 1e-6 : 1e-5,
           .eps_key = "rms_norm_eps"});
  // Phi-3.5-MoE leaves out experts far below the largest, and weighs the second without the first.
  if (!phi) {
    b.decoder(
        {.activation = "silu", .routing = minimax ? sigmoid_routing(b, true) : softmax_routing(b, true)});
  }
  if (phi) {
    b.biases_by(Biased::attention, {"attention_bias"});
  } else {
    b.biases_by(Biased::attention, {});
  }
  b.biases_by(Biased::mlps, {});
  if (!minimax) b.biases_by(Biased::norms_of_heads, {});
  b.grouped_queries();
  if (minimax) {
    const auto size = [&](const char* key) {
      return static_cast<double>(b.config().count({key}).value_or(128));
    };
    const bool states = b.config().has({"rotary_dim"});
    b.rotary({.theta = 5e6, .portion = states ? size("rotary_dim") / size("head_dim") : 1.0});
  } else {
    b.rotary({.theta = 1e6});
    b.windows({.kinds_key = ""});
  }
  llama_stack(b, {.layer = mixtral_layer});
}

}  // namespace

extern const Architecture mixtral = {
    .name = "mixtral",
    .title = "Mixtral, Phi-3.5-MoE or MiniMax M2",
    .model_types = {"mixtral", "phimoe", "minimax_m2"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.",
                  "layers.{}.block_sparse_moe.experts."},
    .without = {},
    .describe = mixtral_forward,
    .harmless = {"auto_map",
                 "lm_head_bias"},  // published with code of its own before it was part of transformers,
    .centres_exactly = true,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_llama",
};

}  // namespace normscope::models::architectures
