#pragma once

#include <string>
#include <vector>

#include <normscope/lnnet/train_runs.hpp>

/// What `train` writes of its runs: the figures, the lines for people.
namespace normscope::cli {

/// Writes curves, boundary, seeds, groups and morph into `folder`, each where the runs have it.
/// Errors    Io
void write_train_figures(const std::string& folder, const std::vector<lnnet::TrainRun>& runs);

/// A line about a run.
[[nodiscard]] std::string run_line(const lnnet::TrainRun& run, bool with_groups);

}  // namespace normscope::cli
