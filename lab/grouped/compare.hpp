#pragma once

#include "frame/experiment.hpp"

#include "training.hpp"

namespace normscope::lab::grouped {

/// Number of groups of the arm that is compared with LN: groups of eight features at width 64, the size that
/// the authors' later code recommends.
inline constexpr std::size_t compared = 8;
inline constexpr std::size_t least_seeds = 3;

/// A small transformer of width 64 for each number of groups, with `rest` and the schedule.
[[nodiscard]] Plan transformers_over_groups(Size size, const Json& rest, const Schedule& schedule);

/// Rule: one arm is better than another by a metric's last value, in every seed, and by at least this much in
/// the mean.
struct Gain {
  const char* metric = "accuracy";
  bool lower_is_better = false;
  double least = 0.0;
  std::size_t seeds = least_seeds;  ///< with fewer there is no verdict
};

[[nodiscard]] Finding compare(const char* name, const Results& one, const char* better_name,
                              const Results& better, const Gain& rule);

}  // namespace normscope::lab::grouped
