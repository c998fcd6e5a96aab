#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/selectability/logits.hpp>

namespace normscope::selectability {

/// The lead of a token at its own direction.
struct Lead {
  double lower = 0.0;          ///< proved, with the rounding error subtracted
  std::size_t constraint = 0;  ///< next highest there, or equal within float32 rounding
};

/// The rows in float32, divided by a power of two so that the largest is near 1.
struct SinglePrecision {
  std::vector<float> rows{};
  std::vector<float> offsets{};
  int exponent = 0;
  /// Error bound of a float32 logit at a point of the ball, including the rounding of the point.
  double error = 0.0;
};
[[nodiscard]] SinglePrecision single_precision(const Logits& logits);

/// The lead of every token at A_i/|A_i|, from half of A Aᵀ: each tile serves its rows and its columns. Rows
/// too short to have a direction in float32 get no lead. The members of a team share the tiles.
[[nodiscard]] std::vector<Lead> screen(const Logits& logits, const SinglePrecision& single, unsigned threads,
                                       const Progress& progress, const Team& team);

}  // namespace normscope::selectability
