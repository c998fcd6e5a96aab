#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The experiments of the papers that train nothing: each a claim, the number it says to expect, and a
/// figure.
namespace normscope::lnnet {

/// What an experiment gave.
struct Outcome {
  std::string ours;    ///< the numbers, in a sentence
  bool holds = false;  ///< whether they are what was expected
  std::string figure;  ///< a Vega-Lite specification that holds its data
};

/// Source    named by `paper`
struct Experiment {
  std::string_view name;
  std::string_view paper;
  std::string_view claim;
  std::string_view expected;
  Outcome (*run)() = nullptr;
};

/// What u(x) = x/|x| makes of the circle after a stretch (stretch) and a shift (fold), and the surface whose
/// slices both are (surface).
[[nodiscard]] const std::vector<Experiment>& experiments();

/// Null if there is none of that name.
[[nodiscard]] const Experiment* find_experiment(std::string_view name);

}  // namespace normscope::lnnet
