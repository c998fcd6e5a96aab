#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include <normscope/core/progress.hpp>

#include "experiment.hpp"

namespace normscope::lab {

/// Runs of one experiment that a store holds, to be done.
struct Work {
  const Experiment* experiment = nullptr;
  std::filesystem::path store{};
  std::vector<std::int64_t> runs{};
  double lease_seconds = 30.0;
};

/// Does the runs in this process, one after the other, until all are done; those that another process holds
/// are waited for, and taken over when it shows no sign of life.
/// Errors    Cancelled, with everything saved; what an experiment or the store throws
void work(const Work& work, const Progress& progress);

/// The same in `processes` processes at once. Requires  no thread but this one
void work_in_processes(const Work& work, unsigned processes, const Progress& progress);

}  // namespace normscope::lab
