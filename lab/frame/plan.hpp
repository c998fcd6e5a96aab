#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include "experiment.hpp"
#include "store/store.hpp"

/// Determines which runs are planned, and which runs of a store belong to a plan.
namespace normscope::lab {

/// A set of runs beyond the experiment's own plan.
struct Sweep {
  /// For each key of a configuration, the values it takes; every combination is run.
  std::vector<std::pair<std::string, std::vector<Json>>> values{};
  std::vector<std::uint64_t> seeds{};  ///< the plan's if empty
};

/// Reads {"values": {KEY: [VALUE, ...], ...}, "seeds": [SEED, ...]}; either may be left out.
///
/// Errors    Io; Format, naming the file and what was expected
[[nodiscard]] Sweep read_sweep(const std::filesystem::path& file);

/// Every run: the plan's configurations, with values replaced by those of the sweep, for seeds 1 … `seeds`
/// (0: the plan's). Each configuration begins with "size".
///
/// Errors    Argument for a key that the experiment's configurations do not have
[[nodiscard]] std::vector<RunKey> planned(const Experiment& experiment, Size size, std::size_t seeds,
                                          const std::optional<Sweep>& sweep);

/// The completed runs of the experiment's plan at that size, without those of sweeps.
[[nodiscard]] Results done(const Store& store, const Experiment& experiment, Size size);

[[nodiscard]] std::string_view to_string(Size size);

}  // namespace normscope::lab
