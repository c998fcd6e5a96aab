#include <string>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// Llama with differential attention: from the outputs of half the heads those of the other half are
// subtracted, times a learned number, and each difference passes a norm without gain.
void diffllama_layer(Builder& b) {
  b.norm("input_layernorm", "attention input");
  const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  b.without_values();
  for (const char* name : {"lambda_q1", "lambda_k1", "lambda_q2", "lambda_k2"})
    b.other(std::string("self_attn.") + name);
  b.without_parameters(
      [&] { b.norm_inside("self_attn.groupnorm", "attention difference", 2 * b.heads().head_dim); });
  b.writes("attention out", "self_attn.o_proj", attended);
  b.norm("post_attention_layernorm", "mlp input");
  llama_mlp(b);
}

void diffllama_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "rms_norm_eps"});
  b.note("bounds of a head are those of its own softmax: attention is the difference of two heads'");
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {});
  b.grouped_queries();
  b.rotary({});
  llama_stack(b, {.layer = diffllama_layer});
}

}  // namespace

extern const Architecture diffllama = {
    .name = "diffllama",
    .title = "DiffLlama",
    .model_types = {"diffllama"},
    .signature = {"layers.{}.self_attn.q_proj.", "layers.{}.self_attn.lambda_q1"},
    .without = {},
    .describe = diffllama_forward,
    .harmless = {"lambda_std_dev"},
};

}  // namespace normscope::models::architectures
