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

/// The metric by which one arm is compared with another.
struct Gain {
  const char* metric = "accuracy";
  bool lower_is_better = false;
};

/// The last values of both arms; the effect is how much better the second is, in each seed that both have.
[[nodiscard]] Finding compare(const char* name, const Results& one, const char* better_name,
                              const Results& better, const Gain& gain = {});

}  // namespace normscope::lab::grouped
