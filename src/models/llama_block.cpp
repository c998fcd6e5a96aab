#include "llama_block.hpp"

#include <string>

#include "builder.hpp"

namespace normscope::models {

void norms_of_queries_and_keys(Builder& b, std::string_view query, std::string_view key) {
  b.norm_of_heads(query, "query norm", "query");
  b.norm_of_heads(key, "key norm", "key");
}

void llama_projections(Builder& b, std::string_view out) {
  const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  if (b.has("self_attn.q_norm.")) norms_of_queries_and_keys(b, "self_attn.q_norm", "self_attn.k_norm");
  for (const char* table : {"self_attn.rotary_emb.cos_cached", "self_attn.rotary_emb.sin_cached"})
    b.buffer(table);
  b.writes("attention out", out, attended);
}

void expect_norms_of_heads(Builder& b) {
  const bool stated = b.config().flag({"use_qk_norm"}).value_or(false);
  if (stated && !b.has("self_attn.q_norm.")) {
    norms_of_queries_and_keys(b, "self_attn.q_norm", "self_attn.k_norm");
  }
}

void llama_attention(Builder& b) {
  b.norm("input_layernorm", "attention input");
  llama_projections(b);
}

void gated_mlp(Builder& b, std::string_view gate, std::string_view in, std::string_view out) {
  const std::uint64_t inner = b.reads("mlp gate", gate);
  b.reads("mlp in", in, inner);
  b.writes("mlp out", out, inner);
}

void llama_mlp(Builder& b) {
  if (b.has("mlp.gate_up_proj.")) {
    const std::uint64_t inner = b.reads_parts({"mlp gate", "mlp in"}, "mlp.gate_up_proj");
    b.writes("mlp out", "mlp.down_proj", inner);
  } else {
    gated_mlp(b, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
  }
}

void llama_branches_with_norms(Builder& b) {
  b.branch();
  llama_projections(b);
  b.norm_of_branch("post_attention_layernorm", "attention output");
  b.branch();
  llama_mlp(b);
  b.norm_of_branch("post_feedforward_layernorm", "mlp output");
}

void llama_stack(Builder& b, const LlamaStyle& style) {
  b.embedding("token embedding", "embed_tokens");
  b.each_layer("layers.{}.", [&] {
    if (style.layer != nullptr) {
      style.layer(b);
    } else {
      llama_attention(b);
      b.rotary_buffer("self_attn.rotary_emb.inv_freq");
      b.norm("post_attention_layernorm", "mlp input");
      llama_mlp(b);
    }
  });
  b.norm(style.final_norm, "final");
  b.unembedding({"lm_head"}, style.tied);
}

}  // namespace normscope::models
