#include "architecture.hpp"
#include "builder.hpp"

namespace normscope::model::architectures {

namespace {

// Parameters of the state-space mixer that belong to no norm and read none.
void state_space(Builder& b) {
  for (const char* name :
       {"mixer.conv1d.weight", "mixer.conv1d.bias", "mixer.x_proj.weight", "mixer.dt_proj.weight",
        "mixer.dt_proj.bias", "mixer.dt_bias", "mixer.A_log", "mixer.D"}) {
    b.other(name);
  }
}

// Falcon Mamba normalizes time steps and what enters and leaves the state, without parameters.
void norms_of_the_state(Builder& b) {
  const std::vector<std::uint64_t> steps = b.shape("mixer.dt_proj.weight");
  const std::vector<std::uint64_t> state = b.shape("mixer.A_log");
  b.without_parameters([&] {
    b.norm_inside("mixer.dt_layernorm", "time step norm", steps.size() == 2 ? steps[1] : 0);
    b.last_eps(1e-6, {"mixer_rms_eps"});
    b.reads("time step", "mixer.dt_proj");
    for (const char* name : {"mixer.b_layernorm", "mixer.c_layernorm"}) {
      b.norm_inside(name, "state norm", state.size() == 2 ? state[1] : 0);
      b.last_eps(1e-6, {"mixer_rms_eps"});
    }
  });
}

void forward(Builder& b) {
  b.norms({.kind = NormKind::rms, .placement = Placement::pre, .eps = 1e-5});
  b.note("its mixers are state spaces: there are no attention heads");
  b.embedding("token embedding", b.has("embeddings.") ? "embeddings" : "embedding");
  b.each_layer("layers.{}.", [&] {
    b.norm("norm", "mixer input");
    state_space(b);
    b.reads("mixer in", "mixer.in_proj");
    if (!b.has("mixer.norm.")) {
      if (b.model_type() == "falcon_mamba") norms_of_the_state(b);
      b.writes("mixer out", "mixer.out_proj");
      return;
    }
    // Mamba 2 normalizes the gated output of the state space.
    const std::vector<std::uint64_t> gain = b.shape("mixer.norm.weight");
    b.norm_inside("mixer.norm", "mixer output", gain.size() == 1 ? gain[0] : 0);
    b.reads("mixer out", "mixer.out_proj");
    b.writes("mixer out", "mixer.out_proj");
  });
  b.norm("norm_f", "final");
  b.unembedding({"lm_head"}, true);
}

}  // namespace

extern const Architecture mamba = {
    .name = "mamba",
    .title = "Mamba, Mamba 2 or Falcon Mamba",
    .model_types = {"mamba", "mamba2", "falcon_mamba"},
    .signature = {"layers.{}.mixer.in_proj.", "layers.{}.mixer.A_log", "layers.{}.norm."},
    .without = {},
    .describe = forward,
    .harmless = {"chunk_size", "conv_kernel", "expand", "n_groups", "rescale_prenorm_residual",
                 "residual_in_fp32", "state_size", "time_step*", "use_associative_scan", "use_conv_bias",
                 "use_mambapy"},
};

}  // namespace normscope::model::architectures
