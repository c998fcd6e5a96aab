#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include <normscope/core/sha256.hpp>
#include <normscope/lnnet/construct.hpp>

#include "line.hpp"

namespace normscope::lnnet {

/// An unfinished construction.
struct ResumeState {
  std::size_t attempt = 0;  ///< rung of the ladder of attempts
  Line<DoubleDouble> line;  ///< holds one of doubles as well
};

/// What a state's numbers stay below.
struct StateBounds {
  std::size_t attempts = 0;
  std::size_t classes = 0;
  std::size_t rows = 0;
};

/// Of the data and the options that shape the net.
[[nodiscard]] Digest fingerprint_of(const std::vector<double>& x, const std::vector<std::uint32_t>& classes,
                                    const ConstructOptions& options);

/// Writes a snapshot; nothing where `path` is empty. Errors    Io
void save_state(const std::filesystem::path& path, const Digest& fingerprint, const ResumeState& state);

/// The state at `path`; nothing where `path` is empty or no file.
/// Errors    Io; Format for a file that is none, is damaged or holds what no construction saves; Argument
///           when the state is of another construction
[[nodiscard]] std::optional<ResumeState> load_state(const std::filesystem::path& path,
                                                    const Digest& fingerprint, const StateBounds& bounds);

}  // namespace normscope::lnnet
