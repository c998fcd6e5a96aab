#pragma once

#include <span>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/numeric/double_double.hpp>

#include "weights.hpp"

/// Sums of products in double-double, for small differences of large numbers.
namespace normscope::certificates {

/// A number and a bound of its error.
struct Twofold {
  DoubleDouble value{};
  double error = 0.0;

  friend Twofold operator-(const Twofold& a, const Twofold& b);
  friend Twofold operator/(const Twofold& a, const Twofold& b);
};

/// directionᵀ(x − origin).
[[nodiscard]] Twofold dot(std::span<const double> direction, std::span<const double> x,
                          std::span<const double> origin);

/// An upper bound of |Σ λ a/Σλ − Σ μ b/Σμ|.
///
/// Requires  weights with a positive sum each
[[nodiscard]] double distance_at_most(MatrixView<const double> a, const std::vector<Weight>& weights_a,
                                      MatrixView<const double> b, const std::vector<Weight>& weights_b);

}  // namespace normscope::certificates
