#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <normscope/results/lab.hpp>

#include "experiment.hpp"
#include "plan.hpp"
#include "store/store.hpp"

/// Results of an experiment as text, JSON, Markdown and figures.
namespace normscope::lab {

/// A claim, its verdict, and whether the store proves that the rule is older than the runs.
struct ClaimResult {
  const Claim* claim = nullptr;
  Finding finding{};
  Verdict verdict{};
  std::optional<double> seen{};  ///< least effect that such runs can see, see `least_seen`
  std::string hash{};            ///< of the rule
  std::size_t runs = 0;          ///< that the verdict uses
  std::size_t runs_before = 0;   ///< of these, begun before the rule was stored; all if it is not stored
};

/// "rule stored before its 60 runs", "rule written after 3 of 60 runs".
[[nodiscard]] std::string provenance(const ClaimResult& result);

/// Results of an experiment at one size, from the runs that a store has.
struct ExperimentResult {
  const Experiment* experiment = nullptr;
  Size size = Size::full;
  std::size_t done = 0;                ///< runs of the plan
  std::size_t planned = 0;             ///< `done` may be larger: --runs adds seeds
  std::vector<std::string> origins{};  ///< machines and versions of the runs, where the store knows them
  std::vector<ClaimResult> claims{};
  std::vector<Figure> figures{};

  /// Number of claims with that outcome.
  [[nodiscard]] std::size_t count(Outcome outcome) const;
};

/// At the quick size and without runs every claim is inconclusive; without runs there are no figures.
[[nodiscard]] ExperimentResult account(const Store& store, const Experiment& experiment, Size size);

/// For the terminal, as an entry of the JSON document, and as a section of docs/results.
[[nodiscard]] std::string to_text(const ExperimentResult& account);
[[nodiscard]] results::LabExperiment entry(const ExperimentResult& account);
[[nodiscard]] std::string to_markdown(const ExperimentResult& account, const std::string& image_folder);
/// What the runs will take in that many processes, for the terminal.
[[nodiscard]] std::string to_text(const Forecast& expected, const Experiment& experiment, Size size,
                                  unsigned processes);
/// Name, paper, claim and run times, without results.
[[nodiscard]] results::LabExperiment about(const Experiment& experiment);

/// The command that performs the runs, and the command that draws their figures.
[[nodiscard]] std::string run_command(const ExperimentResult& account);
[[nodiscard]] std::string show_command(const ExperimentResult& account);

/// Writes each figure as NAME.vl.json (Vega-Lite); its subtitle is the command that makes it.
///
/// Errors    Io
void write_figures(const ExperimentResult& account, const std::filesystem::path& folder);

/// Every number of every run of the experiment, at both sizes and of sweeps, one row per number.
enum class TableFormat { csv, json_lines };
[[nodiscard]] std::string exported(const Store& store, const Experiment& experiment, TableFormat format);

}  // namespace normscope::lab
