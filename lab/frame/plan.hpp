#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
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

/// What planned runs will take.
struct Forecast {
  std::size_t runs = 0;            ///< planned
  std::size_t configurations = 0;  ///< of these
  std::size_t seeds = 0;           ///< of these
  std::size_t done = 0;            ///< of `runs`, in the store
  double seconds = 0.0;            ///< processor time of those left, about
  std::size_t measured = 0;  ///< completed runs of that size that the time is from; 0: Experiment's estimate
  std::uint64_t peak = 0;    ///< most memory of a process that performed these, bytes; 0: unknown
};

/// A run takes as long as the completed ones of its configuration took, else as long as all of them on
/// average, else what the experiment states.
[[nodiscard]] Forecast forecast(const Store* store, const Experiment& experiment, Size size,
                                std::span<const RunKey> keys);

/// The completed runs of the experiment's plan at that size, without those of sweeps.
[[nodiscard]] Results done(const Store& store, const Experiment& experiment, Size size);

[[nodiscard]] std::string_view to_string(Size size);

}  // namespace normscope::lab
