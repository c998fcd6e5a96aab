#include "timm_block.hpp"

#include "branch_scale.hpp"
#include "builder.hpp"

namespace normscope::models {

void timm_block(Builder& b) {
  b.norm("norm1", "attention input");
  const std::uint64_t attended =
      b.has("attn.q.") ? b.attention("attn.q", "attn.k", "attn.v") : b.fused_attention("attn.qkv");
  if (b.has("attn.q_norm.")) {
    b.norm_of_heads("attn.q_norm", "query norm", "query");
    b.norm_of_heads("attn.k_norm", "key norm", "key");
  }
  b.writes("attention out", "attn.proj", attended);
  branch_scale(b, "ls1.gamma");
  b.norm("norm2", "mlp input");
  const std::uint64_t inner = b.reads("mlp in", "mlp.fc1");
  b.writes("mlp out", "mlp.fc2", inner);
  branch_scale(b, "ls2.gamma");
}

}  // namespace normscope::models
