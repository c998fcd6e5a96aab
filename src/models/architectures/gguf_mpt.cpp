#include <optional>
#include <string>

#include <fmt/format.h>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"
#include "config.hpp"

namespace normscope::models::architectures {

namespace {

// What scores depend on is said in the words of the section "attn_config" of Hugging Face's files.
void read_gguf_scores(Builder& b) {
  const double most = b.stated_number("max_alibi_bias", 8.0).value_or(0.0);
  b.scores({.clip = b.config().number({"clip_qkv"}), .most_alibi = most});
  // The class of transformers takes 8 whatever is stated.
  if (most == 0.0) b.scores_not_modelled("attn_config.alibi: false");
  if (most != 0.0 && most != 8.0) {
    b.scores_not_modelled(fmt::format("attn_config.alibi_bias_max: {}", most));
  }
  b.decoder({.activation = "gelu", .fixed_activation = true, .reads_activation = false});
}

void gguf_mpt_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5});
  read_gguf_scores(b);
  b.embedding("token embedding", "token_embd");
  b.embedding("position embedding", "position_embd", Need::optional);
  b.each_layer("blk.{}.", [&] { gguf_plain_layer(b); });
  b.norm("output_norm", "final");
  b.unembedding({"output"}, true);
}

}  // namespace

extern const Architecture gguf_mpt = {
    .name = "gguf_mpt",
    .title = "MPT in llama.cpp's names",
    .model_types = {"mpt"},
    .signature = {"blk.{}.attn_qkv.", "blk.{}.attn_norm.", "blk.{}.ffn_norm."},
    .without = {},
    .describe = gguf_mpt_forward,
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
