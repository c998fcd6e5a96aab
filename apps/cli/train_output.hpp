#pragma once

#include <string>
#include <vector>

#include <normscope/documents/training.hpp>

/// What `train` writes of its runs: the figures, the lines for people.
namespace normscope::cli {

using documents::TrainRun;

/// Writes curves, boundary, seeds, groups and morph into `folder`, each where the runs have it.
/// Errors    Io
void write_train_figures(const std::string& folder, const std::vector<TrainRun>& runs, const TrainRun& best);

/// A line about a run.
[[nodiscard]] std::string run_line(const TrainRun& run, bool with_groups);

}  // namespace normscope::cli
