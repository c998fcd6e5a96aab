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
  b.writes("attention out", "self_attn.o_proj", attended);
}

void gated_mlp(Builder& b, std::string_view gate, std::string_view in, std::string_view out) {
  const std::uint64_t inner = b.reads("mlp gate", gate);
  b.reads("mlp in", in, inner);
  b.writes("mlp out", out, inner);
}

}  // namespace normscope::model
