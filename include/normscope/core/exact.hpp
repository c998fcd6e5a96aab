#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include <normscope/core/assert.hpp>
#include <normscope/core/double_double.hpp>

/// Error-free arithmetic, for decisions that depend on the last bits.
namespace normscope {

/// a + b, exactly.
///
/// Source    [Knuth, TAOCP 2, 4.2.2]
[[nodiscard]] inline DoubleDouble two_sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

/// a b, exactly if neither part overflows or underflows.
[[nodiscard]] inline DoubleDouble two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

/// A number and a bound of its error.
struct Bounded {
  double value = 0.0;
  double error = 0.0;

  [[nodiscard]] double low() const { return value - error; }
  [[nodiscard]] double high() const { return value + error; }
};

/// A sum of products in about twice the precision, with a bound of its error.
///
/// Source    [Ogita, Rump, Oishi 2005, Accurate sum and dot product, Dot2]
class ExactSum {
 public:
  void add(DoubleDouble a, double b) {
    if (a.high == 0.0 || b == 0.0) return;
    const DoubleDouble product = two_product(a.high, b);
    const DoubleDouble sum = two_sum(sum_, product.high);
    sum_ = sum.high;
    rest_ += sum.low + (product.low + a.low * b);
    size_ += std::abs(product.high);
    ++terms_;
  }

  /// |value − exact| <= error, which is 2u |value| + 8 (terms + 2)² u² Σ|a b|.
  [[nodiscard]] Bounded result() const {
    if (terms_ == 0.0) return {};
    constexpr double u = 0x1p-53;
    const double value = sum_ + rest_;
    const double terms = terms_ + 2.0;
    return {value, 2.0 * u * std::abs(value) + 8.0 * terms * terms * u * u * size_ +
                       4.0 * terms * std::numeric_limits<double>::min()};
  }

 private:
  double sum_ = 0.0;
  double rest_ = 0.0;
  double size_ = 0.0;
  double terms_ = 0.0;
};

/// directionᵀ(a − b), with exact differences and products.
///
/// Accuracy  within its own bound, 2u of the result but for terms of second order
///           (test: Exact.DifferenceDotIsWithinItsBound)
[[nodiscard]] inline Bounded difference_dot(std::span<const double> direction, std::span<const double> a,
                                            std::span<const double> b) {
  NORMSCOPE_ASSERT(direction.size() == a.size() && a.size() == b.size());
  ExactSum sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.add(two_sum(a[i], -b[i]), direction[i]);
  return sum.result();
}

}  // namespace normscope
