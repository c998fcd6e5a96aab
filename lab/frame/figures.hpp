#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <normscope/results/figures/vega.hpp>

#include "experiment.hpp"

/// Common figures: metrics over seeds as means with standard deviations.
namespace normscope::lab {

/// What to plot: a metric for each value of one key of the configurations.
struct Drawn {
  std::string_view series;  ///< key whose values get different colours
  std::string_view metric;
  const char* title = "";    ///< of the metric's axis
  bool logarithmic = false;  ///< that axis
  std::uint64_t from = 0;    ///< the first step that is drawn, by `over_steps`
};

/// The metric over steps: mean and standard deviation over seeds, at steps that every seed has.
[[nodiscard]] Figure over_steps(std::string name, std::string caption, const Results& results,
                                const Drawn& drawn);

/// The final metric as a function of another key of the configurations.
[[nodiscard]] Figure at_end(std::string name, std::string caption, const Results& results, const Drawn& drawn,
                            std::string_view across, const char* across_title);

/// A configuration's value as text.
[[nodiscard]] std::string shown(const Json& value);

}  // namespace normscope::lab
