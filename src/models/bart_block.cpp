#include "bart_block.hpp"

#include "builder.hpp"

namespace normscope::models {

namespace {

void bart_mlp(Builder& b, bool before) {
  if (before) b.norm("final_layer_norm", "mlp input");
  const std::uint64_t inner = b.reads("mlp in", "fc1");
  b.writes("mlp out", "fc2", inner);
  if (!before) b.norm("final_layer_norm", "mlp output");
}

void bart_self_attention(Builder& b, bool before) {
  if (before) b.norm("self_attn_layer_norm", "attention input");
  const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  b.writes("attention out", "self_attn.out_proj", attended);
  if (!before) b.norm("self_attn_layer_norm", "attention output");
}

// The encoder and the decoder may differ in the number of heads.
void bart_heads(Builder& b, Config::Keys keys) {
  const std::uint64_t usual = b.config().count(Config::heads_keys).value_or(0);
  b.heads() = {.heads = b.config().count(keys).value_or(usual)};
}

}  // namespace

void bart_encoder_layers(Builder& b, const BartStyle& style) {
  bart_heads(b, {"encoder_attention_heads"});
  const auto layer = [&] {
    bart_self_attention(b, style.before);
    bart_mlp(b, style.before);
  };
  b.each_layer("layers.{}.", layer, {"encoder_layers"});
}

void bart_decoder_layers(Builder& b, const BartStyle& style) {
  bart_heads(b, {"decoder_attention_heads"});
  const auto layer = [&] {
    bart_self_attention(b, style.before);
    if (style.before) b.norm("encoder_attn_layer_norm", "cross-attention input");
    const std::uint64_t attended =
        b.cross_attention("encoder_attn.q_proj", "encoder_attn.k_proj", "encoder_attn.v_proj");
    b.writes("cross-attention out", "encoder_attn.out_proj", attended);
    if (!style.before) b.norm("encoder_attn_layer_norm", "cross-attention output");
    bart_mlp(b, style.before);
  };
  b.each_layer("layers.{}.", layer, {"decoder_layers"});
}

}  // namespace normscope::models
