#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include <normscope/lnnet/construct.hpp>

#include "line.hpp"

namespace normscope::lnnet {

/// An unfinished construction.
struct ResumeState {
  std::size_t attempt = 0;        ///< rung of the ladder of attempts
  std::uint64_t fingerprint = 0;  ///< of the data and the options that shape the net
  Line<DoubleDouble> line;        ///< holds one of doubles as well
};

/// A number that other data, labels or options do not have.
[[nodiscard]] std::uint64_t fingerprint_of(const std::vector<double>& x,
                                           const std::vector<std::uint32_t>& classes,
                                           const ConstructOptions& options);

/// Writes a safetensors file, atomically; nothing where `path` is empty.
void save_state(const std::filesystem::path& path, const ResumeState& state);

/// The state at `path`; nothing where `path` is empty or no file.
/// Errors    Io, Format, Shape; Argument when the state is of another construction
[[nodiscard]] std::optional<ResumeState> load_state(const std::filesystem::path& path,
                                                    std::uint64_t fingerprint);

}  // namespace normscope::lnnet
