#include <cstddef>
#include <cstdint>

#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models {

void gguf_attention(Builder& b) {
  const std::uint64_t attended =
      b.has("attn_qkv.") ? b.fused_attention("attn_qkv") : b.attention("attn_q", "attn_k", "attn_v");
  if (b.has("attn_q_norm.")) norms_of_queries_and_keys(b, "attn_q_norm", "attn_k_norm");
  b.writes("attention out", "attn_output", attended);
}

void gguf_plain_mlp(Builder& b) {
  const std::uint64_t inner = b.reads("mlp in", "ffn_up");
  b.writes("mlp out", "ffn_down", inner);
}

void gguf_plain_layer(Builder& b) {
  b.norm("attn_norm", "attention input");
  gguf_attention(b);
  b.norm("ffn_norm", "mlp input");
  gguf_plain_mlp(b);
}

void gguf_parallel_layer(Builder& b) {
  b.norm("attn_norm", "attention input");
  gguf_attention(b);
  if (b.has("ffn_norm.")) b.norm("ffn_norm", "mlp input");
  b.has("ffn_gate.") ? gguf_gated_mlp(b) : gguf_plain_mlp(b);
}

void gguf_gated_mlp(Builder& b) {
  if (b.has("ffn_gate_inp.")) {
    b.reads("router", "ffn_gate_inp");
    router_correction(b, "exp_probs_b.bias");
    b.each_expert("ffn_gate_exps.weight",
                  [&] { gated_mlp(b, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"); });
    if (b.has("ffn_gate_shexp.")) gated_mlp(b, "ffn_gate_shexp", "ffn_up_shexp", "ffn_down_shexp");
    b.reads("shared expert gate", "ffn_gate_inp_shexp", 0, Need::optional);
  } else if (b.has("ffn_gate.")) {
    gated_mlp(b, "ffn_gate", "ffn_up", "ffn_down");
  } else {
    const std::uint64_t inner = b.reads_parts({"mlp gate", "mlp in"}, "ffn_up");
    b.writes("mlp out", "ffn_down", inner);
  }
}

void gguf_exact_gelu(Builder& b, bool encodes) {
  b.decoder({.activation = "gelu", .fixed_activation = true, .encodes = encodes});
  b.note("its GELU is the exact one; llama.cpp computes the approximation by tanh");
}

std::size_t gguf_rotary_dims(const Builder& b) {
  return static_cast<std::size_t>(b.config().count({"rope_dimension_count"}).value_or(0));
}

namespace {

// "post_attention_norm" is of attention's output, or in some families the norm before the MLP.
void gguf_gated_layer(Builder& b) {
  if (b.has("nextn.")) return;  // a layer that predicts further tokens
  const bool of_output = b.has("ffn_norm.") && b.has("post_attention_norm.");
  b.norm("attn_norm", "attention input");
  gguf_attention(b);
  if (of_output) b.norm_of_branch("post_attention_norm", "attention output");
  b.norm(b.has("post_attention_norm.") && !of_output ? "post_attention_norm" : "ffn_norm", "mlp input");
  gguf_gated_mlp(b);
  if (b.has("post_ffw_norm.")) b.norm_of_branch("post_ffw_norm", "mlp output");
}

}  // namespace

void gguf_stack(Builder& b, void (*layer)(Builder& b)) {
  b.grouped_queries();
  b.embedding("token embedding", "token_embd");
  b.each_layer("blk.{}.", [&] {
    if (layer != nullptr) {
      layer(b);
    } else {
      gguf_gated_layer(b);
    }
    b.buffer("attn_rot_embd.weight");
  });
  b.rotary_divisors("rope_freqs.weight");
  b.norm("output_norm", "final");
  b.unembedding({"output"}, true);
}

}  // namespace normscope::models
