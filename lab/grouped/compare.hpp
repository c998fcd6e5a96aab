#pragma once

#include "frame/experiment.hpp"

#include "training.hpp"

namespace normscope::lab::grouped {

/// Groups of the arm that LN is held against: in width 64 of eight entries each, the size the authors' later
/// code recommends.
inline constexpr std::size_t compared = 8;
inline constexpr std::size_t least_seeds = 3;

/// A small transformer of width 64 in each number of groups, with what `rest` and the schedule say.
[[nodiscard]] Plan transformers_over_groups(Size size, const Json& rest, const Schedule& schedule);

/// One arm better than another by a metric's last value, in every seed, and by at least so much in the mean.
struct Gain {
  const char* metric = "accuracy";
  bool lower_is_better = false;
  double least = 0.0;
  std::size_t seeds = least_seeds;  ///< with fewer there is no verdict
};

[[nodiscard]] Finding compare(const char* name, const Results& one, const char* better_name,
                              const Results& better, const Gain& rule);

}  // namespace normscope::lab::grouped
