#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/convex/minimum_norm.hpp>
#include <normscope/core/view.hpp>
#include <normscope/numeric/exact.hpp>

namespace normscope::convex {

/// The logits A u + a, and the squares of the rows' lengths.
struct LogitRows {
  MatrixView<const double> rows{};    ///< A, count × width
  std::span<const double> offsets{};  ///< a
  std::vector<double> squares{};      ///< |A_j|², for `tangent_bound`
};

[[nodiscard]] std::vector<double> squared_lengths(MatrixView<const double> rows);

/// f(v) = log softmax(A v + a)_target is at most B = log p_target + |g| − g·u for |v| <= 1, with p the
/// probabilities at u = `point` and g = A_target − Σ p_j A_j. Returns B for the probabilities (count) of
/// logits within `error` of those at u, `mean` (width) being Σ p_j A_j and `value` log p_target; and by how
/// much B of other logits, within `rounding` of those at u, differs at most.
[[nodiscard]] Bounded tangent_bound(const LogitRows& logits, std::size_t target,
                                    std::span<const double> point, std::span<const double> probabilities,
                                    std::span<const double> mean, double value, double error,
                                    double rounding);

/// The probabilities that change no bound when the others are 0.
[[nodiscard]] std::vector<PointWeight> sizable_weights(std::span<const double> probabilities);

}  // namespace normscope::convex
