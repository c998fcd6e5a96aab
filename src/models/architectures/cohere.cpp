#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void cohere_layer(Builder& b) {
  llama_attention(b);
  expect_norms_of_heads(b);
  b.rotary_buffer("self_attn.rotary_emb.inv_freq");
  llama_mlp(b);
}

// Attention and MLP both read the single norm of a layer. Cohere2 rotates queries and keys only in layers
// with a window.
void cohere_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_eps"});
  b.decoder({.activation = "silu"});
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {});
  b.biases_by(Biased::norms, {});
  b.grouped_queries();
  const bool second = b.model_type() == "cohere2";
  if (second) {
    b.biases_by(Biased::norms_of_heads, {});
  } else {
    b.biases_by(Biased::norms_of_heads, {"use_qk_norm"});
  }
  b.rotary({.interleaved = true, .theta = second ? 1e4 : 0.0, .windows_only = second});
  if (second) b.windows({.period = 4});
  b.logits(b.config().number({"logit_scale"}).value_or(0.0625));
  llama_stack(b, {.tied = true, .layer = cohere_layer});
}

}  // namespace

extern const Architecture cohere = {
    .name = "cohere",
    .title = "Cohere Command R",
    .model_types = {"cohere", "cohere2"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.", "layers.{}.mlp.gate_proj."},
    .without = {},
    .describe = cohere_forward,
    .harmless = {"layer_switch", "order_of_interleaved_layers", "position_embedding_type",
                 "use_embedding_sharing", "use_gated_activation", "use_parallel_block",
                 "use_parallel_embedding"},
    .by_model_type_only = true,
    .centres_exactly = true,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_command_r",
};

}  // namespace normscope::models::architectures
