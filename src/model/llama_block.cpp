#include "llama_block.hpp"

#include "builder.hpp"

namespace normscope::model {

void llama_attention(Builder& b) {
  b.norm("input_layernorm", "attention input");
  const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  if (b.has("self_attn.q_norm.")) {
    b.norm_of_heads("self_attn.q_norm", "query norm", "query");
    b.norm_of_heads("self_attn.k_norm", "key norm", "key");
  }
  for (const char* table : {"self_attn.rotary_emb.cos_cached", "self_attn.rotary_emb.sin_cached"})
    b.buffer(table);
  b.writes("attention out", "self_attn.o_proj", attended);
}

void gated_mlp(Builder& b, std::string_view gate, std::string_view in, std::string_view out) {
  const std::uint64_t inner = b.reads("mlp gate", gate);
  b.reads("mlp in", in, inner);
  b.writes("mlp out", out, inner);
}

void llama_stack(Builder& b, const LlamaStyle& style) {
  b.embedding("token embedding", "embed_tokens");
  b.each_layer("layers.{}.", [&] {
    llama_attention(b);
    b.rotary_buffer("self_attn.rotary_emb.inv_freq");
    if (!style.parallel) b.norm("post_attention_layernorm", "mlp input");
    gated_mlp(b, "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj");
  });
  b.norm("norm", "final");
  b.unembedding({"lm_head"}, style.tied);
}

}  // namespace normscope::model
