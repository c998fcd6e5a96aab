#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void gguf_t5_attention(Builder& b) {
  b.norm("attn_norm", "attention input");
  const std::uint64_t attended = b.attention("attn_q", "attn_k", "attn_v");
  b.other("attn_rel_b.weight");
  b.writes("attention out", "attn_o", attended);
}

void gguf_t5_cross_attention(Builder& b) {
  b.norm("cross_attn_norm", "cross-attention input");
  const std::uint64_t attended = b.cross_attention("cross_attn_q", "cross_attn_k", "cross_attn_v");
  b.other("cross_attn_rel_b.weight");
  b.writes("cross-attention out", "cross_attn_o", attended);
}

void gguf_t5_mlp(Builder& b) {
  b.norm("ffn_norm", "mlp input");
  if (b.has("ffn_gate.")) {
    gated_mlp(b, "ffn_gate", "ffn_up", "ffn_down");
  } else {
    gguf_plain_mlp(b);
  }
}

void begin_t5_stack(Builder& b, const char* name) {
  b.new_stream();
  b.stack(name);
  b.embedding("token embedding", "token_embd");
}

// llama.cpp does not divide the logits of a shared table by the root of the width, as Hugging Face's class
// does.
void gguf_t5_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-6, .eps_key = "rms_norm_eps"});
  b.scores({.scale = 1.0});
  b.scores_not_modelled("relative_attention_bias");
  begin_t5_stack(b, "encoder");
  b.each_layer("enc.blk.{}.", [&] {
    gguf_t5_attention(b);
    gguf_t5_mlp(b);
  });
  b.norm("enc.output_norm", "final");
  if (!b.has("dec.")) return;
  b.remember_for_cross_attention();
  begin_t5_stack(b, "decoder");
  const auto layer = [&] {
    gguf_t5_attention(b);
    gguf_t5_cross_attention(b);
    gguf_t5_mlp(b);
  };
  b.each_layer("dec.blk.{}.", layer, {"decoder_block_count"});
  b.norm("dec.output_norm", "final");
  b.unembedding({"output"}, true);
}

}  // namespace

extern const Architecture gguf_t5 = {
    .name = "gguf_t5",
    .title = "T5 in llama.cpp's names",
    .model_types = {"t5", "t5encoder"},
    .signature = {"enc.blk.{}.attn_q.", "enc.blk.{}.attn_norm.", "enc.blk.{}.ffn_up."},
    .without = {},
    .describe = gguf_t5_forward,
    .harmless = {"decoder_block_count", "layer_norm_epsilon", "relative_buckets_count"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
