#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/norm_spec.hpp>

namespace normscope::lab::language {

/// The fraction of the keys of a sequence that are unselectable.
struct KeyShares {
  double rows = 0.0;     ///< for the input rows of the norm
  double keys = 0.0;     ///< for its output: the paper's number, with all heads as one
  double in_head = 0.0;  ///< for the keys of a head, mean over heads
  std::size_t undecided = 0;
};

/// Shapes    stream (any rows · norm.width), key_map (norm.width · norm.width), heads one below the other
///
/// Requires  a layer norm; `scales` is false where it only projects
[[nodiscard]] KeyShares key_shares(std::span<const double> stream, const NormSpec& norm, bool scales,
                                   std::span<const double> key_map, std::size_t heads);

/// The fraction in `sets` sets of `count` independent normal keys.
[[nodiscard]] double normal_share(std::size_t count, std::size_t width, std::size_t sets, std::uint64_t seed);

}  // namespace normscope::lab::language
