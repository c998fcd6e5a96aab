#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void gguf_gpt2_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.decoder({.activation = "gelu_new", .fixed_activation = true});
  b.embedding("token embedding", "token_embd");
  b.embedding("position embedding", "position_embd");
  b.each_layer("blk.{}.", [&] { gguf_plain_layer(b); });
  b.norm("output_norm", "final");
  b.unembedding({"output"}, true);
}

}  // namespace

extern const Architecture gguf_gpt2 = {
    .name = "gguf_gpt2",
    .title = "GPT-2 in llama.cpp's names",
    .model_types = {"gpt2"},
    .signature = {"blk.{}.attn_qkv.", "blk.{}.attn_norm.", "position_embd."},
    .without = {},
    .describe = gguf_gpt2_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
