#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/progress.hpp>
#include <normscope/selectability/logits.hpp>

namespace normscope::selectability {

/// How far a token leads where its own row points.
struct Lead {
  double lower = 0.0;     ///< proved; what rounding may have done is taken off
  std::size_t rival = 0;  ///< the next highest token there, or one as high to float32's rounding
};

/// The rows in float32, divided by a power of two so that the largest is near 1.
struct SinglePrecision {
  std::vector<float> rows{};
  std::vector<float> offsets{};
  int exponent = 0;
  /// Bound on what float32 does to a logit at a point of the ball, that point rounded too.
  double error = 0.0;
};
[[nodiscard]] SinglePrecision single_precision(const Logits& logits);

/// The lead of every token at A_i/|A_i|, from half of A Aᵀ: a tile serves its rows and its columns.
/// A row too short to have a direction in float32 leads nowhere.
[[nodiscard]] std::vector<Lead> screen(const Logits& logits, const SinglePrecision& single, unsigned threads,
                                       const Progress& progress);

}  // namespace normscope::selectability
