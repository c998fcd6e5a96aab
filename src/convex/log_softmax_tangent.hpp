#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/numeric/exact.hpp>

namespace normscope::convex {

/// The logits A u + a, and the squares of the rows' lengths.
struct LogitRows {
  MatrixView<const double> rows{};    ///< A, count × width
  std::span<const double> offsets{};  ///< a
  std::vector<double> squares{};      ///< |A_j|²

  LogitRows(MatrixView<const double> from, std::span<const double> offsets_of_rows);
};

/// Probabilities p of the rows as an upper bound of f(v) = log softmax(A v + a)_target. With p at the point
/// u, f(v) <= B = log p_target + |g| − g·u for |v| <= 1.
struct SoftmaxTangent {
  double value = 0.0;              ///< log p_target
  std::vector<double> gradient{};  ///< g = A_target − Σ p_j A_j
  double spread = 0.0;             ///< at least Σ p_j |A_j − Σ p_k A_k|
  double error = 0.0;              ///< p are those of logits within `error` of the logits at u

  /// B, and by how much it differs at most from the B that others compute at u = `point`, with logits within
  /// `rounding` of those there.
  [[nodiscard]] Bounded bound(std::span<const double> point, double rounding) const;
};

/// The tangent of the probabilities (count) of logits within `error` of those at a point; `mean` (width) is
/// Σ p_j A_j, and `value` the logarithm of the target's.
[[nodiscard]] SoftmaxTangent softmax_tangent(const LogitRows& logits, std::size_t target,
                                             std::span<const double> probabilities,
                                             std::span<const double> mean, double value, double error);

/// The tangent at `point` from differences of logits in twice the precision. `rough` are the probabilities by
/// logits with errors up to `error`, which select the rows that matter.
///
/// Cost      some 40 operations an entry of these rows
[[nodiscard]] SoftmaxTangent precise_softmax_tangent(const LogitRows& logits, std::size_t target,
                                                     std::span<const double> point,
                                                     std::span<const double> rough, double error);

}  // namespace normscope::convex
