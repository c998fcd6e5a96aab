#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The converter orders the rows of the fused matrix as [queries | keys | values], which are mixed per head in
// Hugging Face's files.
void gguf_bloom_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  b.scores({.most_alibi = 8.0});
  b.decoder({.activation = "gelu_new", .fixed_activation = true, .reads_activation = false});
  b.embedding("token embedding", "token_embd");
  b.norm("token_embd_norm", "embedding", Placement::post);
  b.each_layer("blk.{}.", [&] { gguf_plain_layer(b); });
  b.norm("output_norm", "final");
  b.unembedding({"output"}, true);
}

}  // namespace

extern const Architecture gguf_bloom = {
    .name = "gguf_bloom",
    .title = "BLOOM in llama.cpp's names",
    .model_types = {"bloom"},
    .signature = {"blk.{}.attn_qkv.", "blk.{}.attn_norm.", "token_embd_norm."},
    .without = {},
    .describe = gguf_bloom_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
