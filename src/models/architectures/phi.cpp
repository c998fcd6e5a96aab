#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Attention and MLP both read the single norm of a layer.
void phi_layer(Builder& b) {
  b.norm("input_layernorm", "attention input");
  llama_projections(b, "self_attn.dense");
  if (b.config().flag({"qk_layernorm"}).value_or(b.has("self_attn.q_layernorm."))) {
    norms_of_queries_and_keys(b, "self_attn.q_layernorm", "self_attn.k_layernorm");
  }
  b.rotary_buffer("self_attn.rotary_emb.inv_freq");
  const std::uint64_t inner = b.reads("mlp in", "mlp.fc1");
  b.writes("mlp out", "mlp.fc2", inner);
}

LensBlocks phi_settings(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_eps"});
  b.decoder({.activation = "gelu_new"});
  b.biases_by(Biased::norms_of_heads, {"qk_layernorm"});
  b.grouped_queries();
  b.rotary({.portion = 0.5});
  return LensBlocks::parallel;
}

void phi_forward(Builder& b) {
  phi_settings(b);
  llama_stack(b, {.layer = phi_layer, .final_norm = "final_layernorm", .biased_head = true});
}

}  // namespace

extern const Architecture phi = {
    .name = "phi",
    .title = "Phi-1, Phi-1.5 or Phi-2",
    .model_types = {"phi"},
    .signature = {"layers.{}.self_attn.dense.", "layers.{}.self_attn.q_proj.", "layers.{}.mlp.fc1."},
    .without = {},
    .describe = phi_forward,
    .harmless = {"auto_map"},  // published with code of its own before it was part of transformers,
    .centres_exactly = true,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_phi2",
    .in_transformer_lens = phi_settings,
};

}  // namespace normscope::models::architectures
