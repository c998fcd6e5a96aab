#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include <normscope/core/snapshot.hpp>
#include <normscope/nets/construct.hpp>

#include "line.hpp"

namespace normscope::nets {

/// An unfinished construction.
struct ResumeState {
  std::size_t attempt = 0;  ///< index in the order of attempts
  Line<DoubleDouble> line;  ///< also holds a line of doubles
};

/// Bound of a state's numbers.
struct StateBounds {
  std::size_t attempts = 0;
  std::size_t classes = 0;
  std::size_t rows = 0;
};

/// Hash of the data and the options that determine the net.
[[nodiscard]] Digest fingerprint_of(const std::vector<double>& x, const std::vector<std::uint32_t>& classes,
                                    const ConstructOptions& options);

/// Writes a snapshot; does nothing if `path` is empty.
///
/// Errors    Io
void save_state(const std::filesystem::path& path, const Digest& fingerprint, const ResumeState& state);

/// The state at `path`; none if `path` is empty or does not exist.
///
/// Errors    Io; Format for a file that is no state, is damaged, or has values that no construction saves;
///           Argument if the state is of another construction
[[nodiscard]] std::optional<ResumeState> load_state(const std::filesystem::path& path,
                                                    const Digest& fingerprint, const StateBounds& bounds);

}  // namespace normscope::nets
