#include "state_space_block.hpp"

#include <cstdint>
#include <vector>

#include "builder.hpp"

namespace normscope::models {

namespace {

// One matrix computes the time step and the input and output vectors of the state (B and C); each part has
// its own norm.
void norms_of_the_state(Builder& b, bool own_eps) {
  const std::vector<std::uint64_t> steps = b.shape("dt_proj.weight");
  const std::vector<std::uint64_t> states = b.shape("A_log");
  const std::uint64_t rank = steps.size() == 2 ? steps[1] : 0;
  const std::uint64_t size = states.size() == 2 ? states[1] : 0;
  const auto norm = [&](const char* name, const char* role, std::uint64_t first, std::uint64_t count) {
    b.norm_of_outputs(name, role,
                      {.role = "state parameters", .map = "x_proj", .first = first, .count = count});
    if (own_eps) b.last_eps(1e-6, {"mixer_rms_eps"});
  };
  norm("dt_layernorm", "time step norm", 0, rank);
  b.reads("time step", "dt_proj");
  norm("b_layernorm", "state norm", rank, size);
  b.reads_are_indirect();
  norm("c_layernorm", "state norm", rank + size, size);
  b.reads_are_indirect();
}

}  // namespace

void state_space_mixer(Builder& b, StateNorms norms) {
  for (const char* name : {"conv1d.weight", "conv1d.bias", "x_proj.weight", "dt_proj.weight", "dt_proj.bias",
                           "dt_bias", "A_log", "D"}) {
    b.other(name);
  }
  b.reads("mixer in", "in_proj");
  if (!b.has("norm.")) {
    if (norms == StateNorms::with_gains) norms_of_the_state(b, false);
    if (norms == StateNorms::without_parameters) {
      b.without_parameters([&] { norms_of_the_state(b, true); });
    }
    b.writes("mixer out", "out_proj");
    return;
  }
  // Mamba 2 normalizes the gated output of the state space.
  const std::vector<std::uint64_t> gain = b.shape("norm.weight");
  b.norm_inside("norm", "mixer output", gain.size() == 1 ? gain[0] : 0);
  b.reads("mixer out", "out_proj");
  b.writes("mixer out", "out_proj");
}

}  // namespace normscope::models
