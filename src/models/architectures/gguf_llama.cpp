#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// llama.cpp orders the rows of Llama's queries and keys so that the two coordinates of a rotary pair are
// neighbours. In Qwen they are half a head apart.
void gguf_llama_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5});
  b.decoder({.activation = "silu", .fixed_activation = true});
  b.rotary({.interleaved = b.model_type() == "llama", .dims = gguf_rotary_dims(b)});
  b.head_dim_from("blk.0.attn_q_norm");
  gguf_stack(b);
}

}  // namespace

extern const Architecture gguf_llama = {
    .name = "gguf_llama",
    .title = "Llama, Mistral, Mixtral or Qwen in llama.cpp's names",
    .model_types = {"llama", "qwen2", "qwen3"},
    .signature = {"blk.{}.attn_q.", "blk.{}.attn_norm.", "blk.{}.ffn_norm."},
    .without = {},
    .describe = gguf_llama_forward,
    .harmless = {"tensor_data_layout"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
