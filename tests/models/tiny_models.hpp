#pragma once

#include <string>

#include "models/synthetic.hpp"

namespace normscope::test {

/// The sizes of a Llama-like model in Hugging Face's names.
struct LlamaSizes {
  std::uint64_t layers = 1;
  std::uint64_t width = 8;
  std::uint64_t heads = 1;
  std::uint64_t key_value_heads = 1;
  std::uint64_t head_dim = 16;
  std::uint64_t vocabulary = 11;
  std::string prefix = "model.";
};

/// Its tensors, without norms of queries and keys and without a separate unembedding.
inline Synthetic tiny_llama(const LlamaSizes& sizes = {}) {
  Synthetic file;
  const std::uint64_t width = sizes.width;
  file.add(sizes.prefix + "embed_tokens.weight", {sizes.vocabulary, width});
  file.add(sizes.prefix + "norm.weight", {width});
  for (std::uint64_t layer = 0; layer < sizes.layers; ++layer) {
    const std::string at = sizes.prefix + "layers." + std::to_string(layer) + ".";
    const std::uint64_t queries = sizes.heads * sizes.head_dim;
    const std::uint64_t keys = sizes.key_value_heads * sizes.head_dim;
    file.add(at + "input_layernorm.weight", {width}).add(at + "post_attention_layernorm.weight", {width});
    file.linear(at + "self_attn.q_proj", queries, width, false);
    file.linear(at + "self_attn.k_proj", keys, width, false);
    file.linear(at + "self_attn.v_proj", keys, width, false);
    file.linear(at + "self_attn.o_proj", width, queries, false);
    file.linear(at + "mlp.gate_proj", 12, width, false).linear(at + "mlp.up_proj", 12, width, false);
    file.linear(at + "mlp.down_proj", width, 12, false);
  }
  return file;
}

}  // namespace normscope::test
