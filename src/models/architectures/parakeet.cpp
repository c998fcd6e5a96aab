#include <cstdint>
#include <string>

#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void conformer_mlp(Builder& b, const std::string& norm, const std::string& mlp) {
  b.norm(norm, "mlp input");
  const std::uint64_t inner = b.reads("mlp in", mlp + ".linear1");
  b.writes("mlp out", mlp + ".linear2", inner);
}

// A gated convolution of the positions; both maps around it are convolutions of one position.
void conformer_convolution(Builder& b) {
  b.norm("norm_conv", "convolution input");
  for (const char* name : {"pointwise_conv1", "depthwise_conv", "norm"}) {
    b.other(std::string("conv.") + name + ".weight");
    b.other(std::string("conv.") + name + ".bias");
  }
  b.reads_are_indirect();
  b.input_map("convolution out", "conv.pointwise_conv2");
}

// Attention and the convolution between two halves of an MLP, whose outputs count half.
void parakeet_layer(Builder& b) {
  conformer_mlp(b, "norm_feed_forward1", "feed_forward1");
  b.norm("norm_self_att", "attention input");
  const std::uint64_t attended = b.attention("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj");
  for (const char* name : {"self_attn.bias_u", "self_attn.bias_v", "self_attn.relative_k_proj.weight"})
    b.other(name);
  b.writes("attention out", "self_attn.o_proj", attended);
  conformer_convolution(b);
  conformer_mlp(b, "norm_feed_forward2", "feed_forward2");
  b.norm("norm_out", "layer output", Placement::post);
}

void parakeet_forward(Builder& b) {
  b.norms({.kind = NormKind::layer, .placement = Placement::pre, .eps = 1e-5, .eps_key = ""});
  b.scores_not_modelled("relative positions");
  b.each_part("subsampling.layers.{}.", [&] {
    b.other("weight");
    b.other("bias");
  });
  b.input_map("subsampling", "subsampling.linear");
  b.each_layer("layers.{}.", [&] { parakeet_layer(b); });
  b.reads_are_indirect();
  b.where("ctc_head.", [&] {  // a convolution of one position
    b.other("weight");
    b.other("bias");
  });
}

}  // namespace

extern const Architecture parakeet = {
    .name = "parakeet",
    .title = "Parakeet (FastConformer)",
    .model_types = {"parakeet_ctc", "parakeet_encoder", "parakeet_rnnt", "parakeet_tdt"},
    .signature = {"layers.{}.self_attn.relative_k_proj.", "layers.{}.norm_feed_forward1.",
                  "subsampling.linear."},
    .without = {},
    .describe = parakeet_forward,
    .tower = Tower::audio,
    .harmless = {"blank_token_id", "conv_kernel_size", "convolution_bias", "ctc_*", "decoder_hidden_size",
                 "durations", "encoder_config", "max_symbols_per_step", "num_decoder_layers", "num_mel_bins",
                 "scale_input", "subsampling_*"},
};

}  // namespace normscope::models::architectures
