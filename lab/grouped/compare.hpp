#pragma once

#include "frame/experiment.hpp"

namespace normscope::lab::grouped {

/// One arm better than another by a metric's last value, in every seed, and by at least so much in the mean.
struct Gain {
  const char* metric = "accuracy";
  bool lower_is_better = false;
  double least = 0.0;
  std::size_t seeds = 3;  ///< with fewer there is no verdict
};

[[nodiscard]] Finding compare(const char* name, const Results& one, const char* better_name,
                              const Results& better, const Gain& rule);

}  // namespace normscope::lab::grouped
