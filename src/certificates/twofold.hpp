#pragma once

#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/numeric/double_double.hpp>

#include "weights.hpp"

/// Sums of products in double-double, for small differences of large numbers.
namespace normscope::certificates {

/// Relative rounding error of one double-double operation; see `DoubleDouble`.
inline constexpr double fine = 16.0 * unit * unit;
/// More than the error of a product or sum by underflow.
inline constexpr double underflow = std::numeric_limits<double>::min();

/// A number and a bound of its error.
struct Twofold {
  DoubleDouble value{};
  double error = 0.0;

  [[nodiscard]] bool is_zero() const { return value.high == 0.0 && error == 0.0; }
  /// At least its absolute value.
  [[nodiscard]] double size() const { return std::abs(value.high) * (1.0 + 4.0 * unit) + error; }

  friend Twofold operator-(const Twofold& a, const Twofold& b);
  friend Twofold operator*(const Twofold& a, const Twofold& b);
  friend Twofold operator*(const Twofold& a, double b) { return a * Twofold{DoubleDouble(b)}; }
  friend Twofold operator/(const Twofold& a, const Twofold& b);
};

/// A sum of products with a bound of its rounding error: each of n additions contributes `fine` times the
/// partial sum.
class TwofoldSum {
 public:
  void add(const DoubleDouble& a, double b) {
    if (a.high != 0.0 && b != 0.0) add(Twofold{a * DoubleDouble(b), underflow});
  }
  void add(const Twofold& term) {
    if (term.is_zero()) return;
    sum_ += term.value;
    size_ += std::abs(term.value.high);
    error_ += term.error;
    ++terms_;
  }
  /// Exact if all terms are zero.
  [[nodiscard]] Twofold result() const {
    if (terms_ == 0.0) return {};
    const double terms = terms_ + 4.0;
    return {sum_, 2.0 * terms * fine * size_ + error_ * (1.0 + terms * unit) + 4.0 * terms * underflow};
  }

 private:
  DoubleDouble sum_{};
  double size_ = 0.0;
  double error_ = 0.0;
  double terms_ = 0.0;
};

/// The mean of some numbers.
///
/// Requires  values not empty
[[nodiscard]] Twofold mean_of(std::span<const Twofold> values);

/// An upper bound of the Euclidean length of every vector within the bounds, up to `unit` of it.
[[nodiscard]] double length_at_most(std::span<const Twofold> vector);

/// Σ λ_j (x − row_j), entry by entry.
[[nodiscard]] std::vector<Twofold> weighted_difference(std::span<const double> x,
                                                       MatrixView<const double> rows,
                                                       const std::vector<Weight>& weights);

}  // namespace normscope::certificates
