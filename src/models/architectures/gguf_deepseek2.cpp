#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// The converter splits the map from the latent vector to keys and values, and transposes that to keys: a
// stack with an entry for each head. Earlier files have it whole.
void read_key_value_latent(Builder& b) {
  if (b.has("attn_kv_b.")) {
    b.reads("key and value", "attn_kv_b");
    return;
  }
  b.layout(Layout::in_out);
  b.each_expert("attn_k_b.weight", [&] { b.reads("key and value", "attn_k_b"); });
  b.layout(Layout::out_in);
  b.each_expert("attn_v_b.weight", [&] { b.reads("key and value", "attn_v_b"); });
}

void gguf_deepseek2_layer(Builder& b) {
  b.norm("attn_norm", "attention input");
  if (b.has("attn_q_a.")) {
    const std::uint64_t width = b.reads("query latent", "attn_q_a");
    b.norm_of_map("attn_q_a_norm", "query latent", "query latent", width, [&] { b.queries("attn_q_b"); });
  } else {
    b.queries("attn_q");
  }
  b.reads("key and value latent", "attn_kv_a_mqa");
  b.norm_of_map("attn_kv_a_norm", "key and value latent", "key and value latent",
                b.config().count({"kv_lora_rank"}).value_or(0), [&] { read_key_value_latent(b); });
  b.writes("attention out", "attn_output",
           b.heads().heads * b.config().count({"value_length_mla"}).value_or(0));
  b.norm("ffn_norm", "mlp input");
  gguf_gated_mlp(b);
}

// YaRN's factor also multiplies the scores.
double gguf_score_scale(const Config& config, double width) {
  const double stretch = config.number({"rope.scaling.factor"}).value_or(1.0);
  const double weight = config.number({"rope.scaling.yarn_log_multiplier"}).value_or(0.0);
  const double factor = stretch > 1.0 ? weight * std::log(stretch) + 1.0 : 1.0;
  return factor * factor / std::sqrt(width);
}

// Keys of all heads are parts of one latent vector: "key_length" and "head_count_kv" are those of that
// vector.
void gguf_deepseek2_forward(Builder& b) {
  const Config& config = b.config();
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-6});
  const std::uint64_t width = config.count({"key_length_mla"}).value_or(192);
  b.heads().head_dim = width;
  b.heads().key_value_heads = b.heads().heads;
  b.scores({.scale = gguf_score_scale(config, static_cast<double>(width))});
  b.scores_not_modelled(fmt::format("kv_lora_rank: {}", config.count({"kv_lora_rank"}).value_or(0)));
  gguf_stack(b, gguf_deepseek2_layer);
}

}  // namespace

extern const Architecture gguf_deepseek2 = {
    .name = "gguf_deepseek2",
    .title = "DeepSeek V2 or V3 in llama.cpp's names",
    .model_types = {"deepseek2"},
    .signature = {"blk.{}.attn_kv_a_mqa.", "blk.{}.attn_kv_a_norm.", "blk.{}.attn_norm."},
    .without = {},
    .describe = gguf_deepseek2_forward,
    // The rotary embedding only matters to scores, which are not modelled.
    .harmless = {"rope*", "q_lora_rank", "value_length", "leading_dense_block_count", "expert_*"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
