#include <cmath>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

// "name: value" of a multiplier that is not 1, else nothing.
std::string other_than_one(const Builder& b, const char* key) {
  const double value = b.config().number({key}).value_or(1.0);
  return value == 1.0 ? std::string() : fmt::format("{}: {}", key, value);
}

// Attention and a state space read the same norm, and both are added to the stream.
void falcon_h1_layer(Builder& b, const std::string& attention_scaled, const std::string& states_scaled) {
  b.norm("input_layernorm", "attention and mixer input");
  b.reads_scaled(attention_scaled, [&] { llama_projections(b); });
  const MixerNames names{.norm_groups = b.config().count({"mamba_n_groups"}).value_or(1),
                         .norm_before_gate = b.config().flag({"mamba_norm_before_gate"}).value_or(true)};
  b.within("mamba.",
           [&] { b.reads_scaled(states_scaled, [&] { state_space_mixer(b, StateNorms::none, names); }); });
  b.norm("pre_ff_layernorm", "mlp input");
  b.within("feed_forward.", [&] { gated_mlp(b, "gate_proj", "up_proj", "down_proj"); });
}

void falcon_h1_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "rms_norm_eps"});
  b.note(
      "the outputs of branches are multiplied before they are added to the residual stream, as *_multiplier "
      "says");
  b.biases_by(Biased::attention, {"attention_bias"});
  b.biases_by(Biased::mlps, {"mlp_bias"});
  b.biases_by(Biased::mixers, {"mamba_proj_bias", "projectors_bias"});
  b.grouped_queries();
  b.rotary({});
  if (b.heads().head_dim == 0 && b.heads().heads != 0) b.heads().head_dim = b.width() / b.heads().heads;
  b.scores({.scale = b.config().number({"key_multiplier"}).value_or(1.0) /
                     std::sqrt(static_cast<double>(b.heads().head_dim))});
  const std::string attention_scaled = other_than_one(b, "attention_in_multiplier");
  b.scores_not_modelled(attention_scaled);
  b.logits(b.config().number({"lm_head_multiplier"}).value_or(1.0));
  const std::string states_scaled = other_than_one(b, "ssm_in_multiplier");
  b.embedding("token embedding", "embed_tokens");
  b.each_layer("layers.{}.", [&] { falcon_h1_layer(b, attention_scaled, states_scaled); });
  b.norm("final_layernorm", "final");
  b.unembedding({"lm_head"}, false);
  b.biases_by(Biased::unembedding, {});
}

}  // namespace

extern const Architecture falcon_h1 = {
    .name = "falcon_h1",
    .title = "Falcon-H1",
    .model_types = {"falcon_h1"},
    .signature = {"layers.{}.mamba.in_proj.", "layers.{}.self_attn.q_proj.", "layers.{}.input_layernorm.",
                  "layers.{}.pre_ff_layernorm.", "layers.{}.feed_forward."},
    .without = {},
    .describe = falcon_h1_forward,
    .harmless = {"mamba_*", "time_step_limit", "num_logits_to_keep", "projectors_bias",
                 "embedding_multiplier", "attention_out_multiplier", "ssm_out_multiplier", "mlp_multipliers",
                 "ssm_multipliers"},
};

}  // namespace normscope::models::architectures
