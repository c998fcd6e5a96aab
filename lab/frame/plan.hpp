#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

#include "experiment.hpp"
#include "store/store.hpp"

/// Which runs are to be done, and which of a store's belong together.
namespace normscope::lab {

/// A choice beyond the experiment's own plan.
struct Sweep {
  /// Each key of a configuration with the values it is to take; every combination is run.
  std::vector<std::pair<std::string, std::vector<Json>>> values{};
  std::vector<std::uint64_t> seeds{};  ///< the plan's where it is empty
};

/// Reads {"values": {KEY: [VALUE, ...], ...}, "seeds": [SEED, ...]}; either may be left out.
/// Errors    Io; Format, naming the file and what was expected
[[nodiscard]] Sweep read_sweep(const std::filesystem::path& file);

/// Every run: the plan's configurations, with the sweep's values put over theirs, for seeds 1 … `seeds` (0:
/// the plan's). Each configuration has "size" in front.
/// Errors    Argument for a key that the experiment's configurations do not have
[[nodiscard]] std::vector<RunKey> planned(const Experiment& experiment, Size size, std::size_t seeds,
                                          const std::optional<Sweep>& sweep);

/// The runs of the experiment's plan at that size that are done; what sweeps added is not among them.
[[nodiscard]] Results done(const Store& store, const Experiment& experiment, Size size);

[[nodiscard]] std::string_view to_string(Size size);

}  // namespace normscope::lab
