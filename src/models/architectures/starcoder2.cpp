#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Llama's attention between LayerNorms with biases, and GPT-2's MLP.
void starcoder2_layer(Builder& b) {
  llama_attention(b);
  b.norm("post_attention_layernorm", "mlp input");
  const std::uint64_t inner = b.reads("mlp in", "mlp.c_fc");
  b.writes("mlp out", "mlp.c_proj", inner);
}

void starcoder2_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = "norm_epsilon"});
  b.decoder({.activation = "gelu_pytorch_tanh"});
  b.biases_by(Biased::norms_of_heads, {});
  b.grouped_queries();
  b.rotary({});
  b.windows({.kinds_key = ""});
  llama_stack(b, {.tied = true, .layer = starcoder2_layer});
}

}  // namespace

extern const Architecture starcoder2 = {
    .name = "starcoder2",
    .title = "StarCoder2",
    .model_types = {"starcoder2"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.", "layers.{}.mlp.c_fc."},
    .without = {},
    .describe = starcoder2_forward,
    .harmless = {"mlp_type", "norm_type", "scale_attn_weights", "attention_softmax_in_fp32",
                 "scale_attention_softmax_in_fp32"},
    .centres_exactly = true,
    .rotates_exactly = true,
    .in_llama_cpp = "gguf_starcoder2",
};

}  // namespace normscope::models::architectures
