#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "architecture.hpp"
#include "builder.hpp"
#include "config.hpp"

namespace normscope::models::architectures {

namespace {

// LongT5 may add keys and values of sums over blocks of the norm's output, behind a norm of their own.
void self_attention_of_t5(Builder& b) {
  const std::uint64_t attended = b.attention("q", "k", "v");
  b.other("relative_attention_bias.weight");
  b.other("global_relative_attention_bias.weight");
  if (b.has("global_input_layer_norm.")) {
    b.has_other_readers();
    b.norm_inside("global_input_layer_norm", "global key and value input", b.width());
    b.reads("key of blocks", "k");
    b.reads("value of blocks", "v");
  }
  b.writes("attention out", "o", attended);
}

// A block holds self-attention, cross-attention in a decoder, and the MLP as numbered sublayers.
void sublayers(Builder& b, bool decoder) {
  b.within("layer.0.", [&] {
    b.norm("layer_norm", "attention input");
    const char* const name = b.has("LocalSelfAttention.")             ? "LocalSelfAttention."
                             : b.has("TransientGlobalSelfAttention.") ? "TransientGlobalSelfAttention."
                                                                      : "SelfAttention.";
    b.within(name, [&] { self_attention_of_t5(b); });
  });
  if (decoder) {
    b.within("layer.1.", [&] {
      b.norm("layer_norm", "cross-attention input");
      const std::uint64_t attended =
          b.cross_attention("EncDecAttention.q", "EncDecAttention.k", "EncDecAttention.v");
      b.other("EncDecAttention.relative_attention_bias.weight");  // early files store one that nothing reads
      b.writes("cross-attention out", "EncDecAttention.o", attended);
    });
  }
  b.within(decoder ? "layer.2." : "layer.1.", [&] {
    b.norm("layer_norm", "mlp input");
    std::uint64_t inner = 0;
    if (b.has("DenseReluDense.wi_0.")) {
      inner = b.reads("mlp gate", "DenseReluDense.wi_0");
      b.reads("mlp in", "DenseReluDense.wi_1", inner);
    } else {
      inner = b.reads("mlp in", "DenseReluDense.wi");
    }
    b.writes("mlp out", "DenseReluDense.wo", inner);
  });
}

void t5_stack(Builder& b, const char* name, bool decoder) {
  b.new_stream();
  b.stack(name);
  b.embedding("token embedding", b.has("shared.") ? "shared" : std::string(name) + ".embed_tokens");
  b.other(std::string(name) + ".embed_tokens.weight");  // the same table again
  b.within(std::string(name) + ".", [&] {
    if (decoder) {
      b.each_layer("block.{}.", [&] { sublayers(b, true); }, {"num_decoder_layers"});
    } else {
      b.each_layer("block.{}.", [&] { sublayers(b, false); });
    }
    b.norm("final_layer_norm", "final");
  });
}

// GGUF files state neither field: llama.cpp takes the values that are not named here.
std::string scores_beyond(const Config& config) {
  std::string beyond = "relative_attention_bias";
  if (const auto most = config.count({"relative_attention_max_distance"}); most && *most != 128) {
    beyond += fmt::format("; relative_attention_max_distance: {}", *most);
  }
  const std::string mlp = config.text({"feed_forward_proj"}).value_or("relu");
  if (mlp != "relu" && mlp != "gated-gelu") beyond += "; feed_forward_proj: " + mlp;
  return beyond;
}

void t5_forward(Builder& b) {
  b.biases_by(Biased::attention, {});
  b.biases_by(Biased::mlps, {});
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-6, .eps_key = "layer_norm_epsilon"});
  b.scores({.scale = 1.0});
  b.scores_not_modelled(scores_beyond(b.config()));
  const std::vector<std::uint64_t> biases =
      b.shape("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight");
  if (b.heads().heads == 0 && biases.size() == 2) b.heads().heads = biases[1];
  b.heads().head_dim = b.config().count({"d_kv"}).value_or(0);
  t5_stack(b, "encoder", false);
  if (!b.has("decoder.")) return;
  b.remember_for_cross_attention();
  t5_stack(b, "decoder", true);
  // Logits of a shared table are divided by sqrt(width); versions differ in the field that says so. mT5's
  // class does not divide.
  const bool tied = b.config().flag({"tie_word_embeddings"}).value_or(true);
  const bool divides = b.config().flag({"scale_decoder_outputs"}).value_or(tied);
  if (b.model_type() == "mt5") {
    if (tied && !b.has("lm_head.")) {
      b.note(
          "logits are not divided by the root of the width, as in transformers 5; earlier versions divided");
    }
  } else if (divides && b.width() != 0) {
    b.logits(1.0 / std::sqrt(static_cast<double>(b.width())));
  }
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture t5 = {
    .name = "t5",
    .title = "T5 or LongT5",
    .model_types = {"t5", "mt5", "umt5", "longt5"},
    .signature = {"encoder.block.{}.layer.{}.layer_norm.", "encoder.block.{}.layer.{}.SelfAttention."},
    .without = {},
    .describe = t5_forward,
    .harmless = {"d_kv", "num_decoder_layers", "feed_forward_proj", "dense_act_fn", "is_gated_act",
                 "relative_attention*", "local_radius", "global_block_size", "encoder_attention_type",
                 "scalable_attention"},
    .in_llama_cpp = "gguf_t5",
};

}  // namespace normscope::models::architectures
