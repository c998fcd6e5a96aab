#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <normscope/core/parallel.hpp>

#include "experiment.hpp"

namespace normscope::lab {

/// Runs of one experiment in a store, to be performed.
struct Work {
  const Experiment* experiment = nullptr;
  std::filesystem::path store{};
  std::vector<std::int64_t> runs{};
  double lease_seconds = 30.0;
  std::string device = "cpu";  ///< see device.hpp
};

/// Performs the runs one after the other in this process until all are done. Runs leased by another process
/// are waited for, and taken over when their lease expires.
///
/// Errors    Cancelled, with everything saved; what an experiment or the store throws
void work(const Work& work, const Progress& progress);

/// Performs the runs in `processes` concurrent processes.
///
/// Requires  no other thread in this process
void work_in_processes(const Work& work, unsigned processes, const Progress& progress);

}  // namespace normscope::lab
