#include <cstdint>

#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {

namespace {

void plain_mlp(Builder& b) {
  const std::uint64_t inner = b.reads("mlp in", "up_proj");
  b.writes("mlp out", "down_proj", inner);
}

// Experts may work between a narrower map of the norm and the map back to the stream.
void nemotron_experts(Builder& b) {
  b.reads("router", "gate");
  router_correction(b, "gate.e_score_correction_bias");
  if (b.has("fc1_latent_proj.")) {
    b.reads("expert latent", "fc1_latent_proj");
    b.each_expert("experts", [&] {
      b.other("up_proj.weight");
      b.other("down_proj.weight");
    });
    b.writes("mlp out", "fc2_latent_proj");
  } else {
    b.each_expert("experts", [&] { plain_mlp(b); });
  }
  b.within("shared_experts.", [&] { plain_mlp(b); });
}

// Each layer is one branch: a state space, attention without positions, experts or an MLP.
void nemotron_h_forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5, .eps_key = "layer_norm_epsilon"});
  b.biases_by(Biased::attention, {});
  b.biases_by(Biased::mlps, {"mlp_bias"});
  b.biases_by(Biased::mixers, {"use_bias"});
  b.grouped_queries();
  b.embedding("token embedding", "embeddings");
  b.each_layer("layers.{}.", [&] {
    const bool states = b.has("mixer.in_proj.");
    const bool attends = b.has("mixer.q_proj.");
    b.norm("norm", states ? "mixer input" : attends ? "attention input" : "mlp input");
    b.within("mixer.", [&] {
      if (states) {
        state_space_mixer(b, StateNorms::none, {.norm_groups = b.config().count({"n_groups"}).value_or(8)});
      } else if (attends) {
        const std::uint64_t attended = b.attention("q_proj", "k_proj", "v_proj");
        b.writes("attention out", "o_proj", attended);
      } else if (b.has("gate.")) {
        nemotron_experts(b);
      } else {
        plain_mlp(b);
      }
    });
  });
  b.norm("norm_f", "final");
  b.unembedding({"lm_head"}, false);
  b.biases_by(Biased::unembedding, {});
  if (b.config().model_types().empty()) {
    b.norms_in_doubt("n_groups, which no configuration states (state the architecture)");
  }
}

}  // namespace

extern const Architecture nemotron_h = {
    .name = "nemotron_h",
    .title = "Nemotron-H",
    .model_types = {"nemotron_h"},
    .signature = {"layers.{}.norm.", "layers.{}.mixer.norm.", "layers.{}.mixer.q_proj.", "norm_f."},
    .without = {},
    .describe = nemotron_h_forward,
    // auto_map: published with code of its own before it was part of transformers.
    .harmless = {"auto_map",
                 "chunk_size",
                 "conv_kernel",
                 "expand",
                 "hybrid_override_pattern",
                 "layers_block_type",
                 "layer_types",
                 "mamba_*",
                 "mlp_hidden_act",
                 "mtp_*",
                 "n_groups",
                 "num_logits_to_keep",
                 "num_nextn_predict_layers",
                 "num_query_groups",
                 "rescale_prenorm_residual",
                 "residual_in_fp32",
                 "sliding_window",
                 "ssm_state_size",
                 "time_step*",
                 "use_conv_bias",
                 "use_mamba_kernels"},
};

}  // namespace normscope::models::architectures
