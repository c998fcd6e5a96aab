#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results.hpp"
#include "run.hpp"

/// What an experiment is. One source file of experiments/ defines one, `const Experiment experiments::NAME`,
/// and being there is all it takes to be listed.
namespace normscope::lab {

/// Seconds to minutes, with less of everything; or what the paper did, as far as one machine can.
enum class Size { quick, full };

/// What a claim came to.
struct Finding {
  std::string ours;           ///< the numbers, in a sentence
  std::optional<bool> holds;  ///< by the rule; none where the rule asks for more than was run
};

/// A claim of a paper, or of ours about it, with a rule that was fixed before the run.
struct Claim {
  std::string_view name;   ///< short, unique in the experiment: "loss_gap"
  std::string_view says;   ///< the claim
  std::string_view paper;  ///< the paper's own number, or where it makes the claim
  std::string_view rule;   ///< effect, direction, least size, seeds
  Finding (*judge)(const Results&);
};

/// A Vega-Lite specification.
struct Figure {
  std::string name;
  std::string caption;
  Json specification;
};

/// What runs are to be done: every configuration with every seed.
struct Plan {
  std::vector<Json> configurations{};
  std::size_t seeds = 1;  ///< seeds 1 … seeds
};

struct Experiment {
  std::string_view name;       ///< "brody-majority": the paper's first author, then what it is
  std::string_view paper;      ///< "Brody 2023"
  std::string_view claim;      ///< in a sentence: what is to be seen
  double quick_seconds = 0.0;  ///< about, on one core
  double full_minutes = 0.0;   ///< about, on one core, all seeds
  Plan (*plan)(Size);
  /// Errors    Cancelled, from Run::reached
  void (*perform)(Run&);
  std::vector<Claim> claims;
  std::vector<Figure> (*figures)(const Results&) = nullptr;  ///< only of what is there; may be empty
};

/// All of them, in the order of names.
[[nodiscard]] const std::vector<const Experiment*>& all_experiments();

/// Null if there is none of that name.
[[nodiscard]] const Experiment* find_experiment(std::string_view name);

}  // namespace normscope::lab
