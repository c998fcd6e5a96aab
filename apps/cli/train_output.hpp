#pragma once

#include <string>
#include <vector>

#include <normscope/nets/train_runs.hpp>

/// The output of `train` about its runs: figures, and lines of text.
namespace normscope::cli {

/// Writes the figures curves, boundary, seeds, groups and morph into `folder`, those that the runs have
/// data for.
///
/// Errors    Io
void write_train_figures(const std::string& folder, const std::vector<nets::TrainRun>& runs);

/// One line of text about a run.
[[nodiscard]] std::string run_line(const nets::TrainRun& run, bool with_groups);

}  // namespace normscope::cli
