#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "results.hpp"
#include "rule.hpp"
#include "run.hpp"

/// Definition of an experiment. Each source file of experiments/ defines one, `const Experiment experiment`
/// in the namespace of the file's name, which is then listed without registration.
namespace normscope::lab {

/// quick: seconds to minutes, without verdicts; full: the size that Experiment::scale describes.
enum class Size { quick, full };

/// What the runs have for a claim. The rule's test turns the effects into a verdict.
struct Finding {
  std::string ours;               ///< the numbers, in a sentence
  std::vector<double> effects{};  ///< as Test describes them; empty: the rule asks for more runs
  std::size_t chosen_from = 1;    ///< the effects are those of the weakest of so many sets, see `weakest`
};

/// The effects of the set with the least mean, with which a claim about every set stands or falls; none if a
/// set has none. That one of several was chosen widens its interval.
///
/// Requires  at least one set
[[nodiscard]] Finding weakest(std::string ours, const std::vector<std::vector<double>>& sets);

/// The effects of a single case, for Test::every_case.
[[nodiscard]] inline std::vector<double> one_case(bool agrees) { return {agrees ? 1.0 : 0.0}; }

/// A claim of a paper, or of ours about it, and the rule that judges it.
struct Claim {
  std::string_view name;   ///< short, unique in the experiment: "loss_gap"
  std::string_view says;   ///< the claim
  std::string_view paper;  ///< the paper's own number, or the place of the claim
  Rule rule;
  Finding (*judge)(const Results&);
  /// What was noticed about the rule or the runs only after them: why a verdict by the rule decides less than
  /// it says. It makes the claim inconclusive.
  std::string_view doubt = {};
  bool ours = false;      ///< not made by the paper
  bool measured = false;  ///< a claim about every case whose cases are trainings or published numbers
};

/// A claim that the paper does not make.
[[nodiscard]] inline Claim as_ours(Claim claim) {
  claim.ours = true;
  return claim;
}

/// Whether runs of the claim can only find an error of its proof or of our program: theorems, identities,
/// constructions.
[[nodiscard]] inline bool is_identity(const Claim& claim) {
  return claim.rule.test == Test::every_case && !claim.measured;
}

/// A Vega-Lite specification.
struct Figure {
  std::string name;
  std::string caption;
  Json specification;
};

/// The runs of an experiment: every configuration with every seed.
struct Plan {
  std::vector<Json> configurations{};
  std::size_t seeds = 1;  ///< seeds 1 … seeds
};

/// What computes an experiment's networks.
enum class Backend {
  own,           ///< code of the lab
  torch,         ///< libtorch on the processor: lab/language
  torch_or_gpu,  ///< libtorch on the processor or a GPU: lab/grouped
};
[[nodiscard]] std::string_view to_string(Backend backend);

struct Experiment {
  std::string_view name;       ///< "brody-majority": the paper's first author, then the topic
  std::string_view paper;      ///< "Brody 2023"
  std::string_view claim;      ///< the claim in one sentence
  double quick_seconds = 0.0;  ///< about, on one core
  double full_minutes = 0.0;   ///< about, on one core, all seeds
  Scale scale{};               ///< of the full size
  Backend backend = Backend::own;
  Plan (*plan)(Size);
  /// Errors    Cancelled, from Run::reached
  void (*perform)(Run&);
  std::vector<Claim> claims;
  std::vector<Figure> (*figures)(const Results&) = nullptr;  ///< of the available results; may be empty
};

/// All experiments, sorted by name.
[[nodiscard]] const std::vector<const Experiment*>& all_experiments();

/// Null if there is none with that name.
[[nodiscard]] const Experiment* find_experiment(std::string_view name);

/// Path of the data file `name` in the folder that the environment variable NORMSCOPE_DATA names.
///
/// Errors    Io if it is missing; the message says how to provide it
[[nodiscard]] std::filesystem::path data_file(std::string_view name);

}  // namespace normscope::lab
