#pragma once

#include <string>
#include <string_view>

#include <normscope/json/vega.hpp>

#include "experiment.hpp"

/// The figures most experiments have: numbers over seeds as means within a deviation.
namespace normscope::lab {

/// What is drawn: a metric of each value of one key of the configurations.
struct Drawn {
  std::string_view series;  ///< key whose values get colours
  std::string_view metric;
  const char* title = "";    ///< of the metric's axis
  bool logarithmic = false;  ///< that axis
};

/// The metric over steps, mean and one deviation between seeds, where every seed has the step.
[[nodiscard]] Figure over_steps(std::string name, std::string caption, const Results& results,
                                const Drawn& drawn);

/// The metric at the end against another key of the configurations.
[[nodiscard]] Figure at_end(std::string name, std::string caption, const Results& results, const Drawn& drawn,
                            std::string_view across, const char* across_title);

/// A configuration's value as people read it.
[[nodiscard]] std::string shown(const Json& value);

}  // namespace normscope::lab
