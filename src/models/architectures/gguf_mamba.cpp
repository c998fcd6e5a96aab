#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

constexpr MixerNames mixer{.in = "ssm_in",
                           .convolution = "ssm_conv1d",
                           .state = "ssm_x",
                           .step = "ssm_dt",
                           .decay = "ssm_a",
                           .skip = "ssm_d",
                           .norm = "ssm_norm",
                           .out = "ssm_out",
                           .own_eps = false};

void gguf_mamba_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5});
  b.note("its mixers are state spaces: there are no attention heads");
  const bool normalized = b.config().flag({"ssm.dt_b_c_rms"}).value_or(false);
  b.embedding("token embedding", "token_embd");
  b.each_layer("blk.{}.", [&] {
    b.norm("attn_norm", "mixer input");
    state_space_mixer(b, normalized ? StateNorms::without_parameters : StateNorms::none, mixer);
  });
  b.norm("output_norm", "final");
  b.unembedding({"output"}, true);
}

}  // namespace

extern const Architecture gguf_mamba = {
    .name = "gguf_mamba",
    .title = "Mamba, Mamba 2 or Falcon Mamba in llama.cpp's names",
    .model_types = {"mamba", "mamba2"},
    .signature = {"blk.{}.ssm_in.", "blk.{}.ssm_a", "blk.{}.attn_norm."},
    .without = {},
    .describe = gguf_mamba_forward,
    .harmless = {"ssm.*"},
    .by_model_type_only = true,
};

}  // namespace normscope::models::architectures
