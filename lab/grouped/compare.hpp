#pragma once

#include "frame/experiment.hpp"

#include "training.hpp"

namespace normscope::lab::grouped {

/// Features of a group of the arm that is compared with LN, the size that the authors' later code recommends.
inline constexpr std::size_t features_of_group = 8;
inline constexpr std::size_t least_seeds = 3;

/// The full size of a comparison of transformers.
struct Extent {
  std::size_t width = 0;
  std::size_t layers = 0;
  std::size_t seeds = least_seeds;
};

/// A small transformer with LN and one with LN-G in groups of eight, with `rest` and the schedule. The quick
/// size has width 64 and two layers.
[[nodiscard]] Plan transformers_over_groups(Size size, const Extent& full, const Json& rest,
                                            const Schedule& schedule);

/// The runs with LN-G in groups of `features_of_group`.
[[nodiscard]] Results in_groups_of_eight(const Results& results);

/// The metric by which one arm is compared with another.
struct Gain {
  const char* metric = "accuracy";
  bool lower_is_better = false;
};

/// The last values of both arms; the effect is how much better the second is, in each seed that both have.
[[nodiscard]] Finding compare(const char* name, const Results& one, const char* better_name,
                              const Results& better, const Gain& gain = {});

/// Runs by a value in their configurations, and what they are called.
struct Arm {
  const char* name = "";
  const char* value = "";
};

/// `compare` of the held-out losses of the runs that have one or the other value for `key`.
[[nodiscard]] Finding compare_losses(const Results& results, const char* key, const Arm& one,
                                     const Arm& better);

/// `compare_losses` of LN and DyT, and of LN and Derf.
[[nodiscard]] Finding dyt_for_layer_norm(const Results& results);
[[nodiscard]] Finding derf_for_layer_norm(const Results& results);

/// `compare` of LN, runs with one group, and LN-G in groups of eight.
[[nodiscard]] Finding compare_groups_of_eight(const Results& results, const Gain& gain = {});

}  // namespace normscope::lab::grouped
