#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

/// Bounds of rounding errors, for results that must hold in exact arithmetic.
namespace normscope {

/// Relative rounding error of one float64 operation.
inline constexpr double unit_roundoff = 0x1p-53;

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// Error bound of a sum of `terms` products, relative to the sum of their sizes, with a factor of two for a
/// few operations around it. It holds for any order of summation, with or without fused products; no product
/// may underflow.
///
/// Source    [Higham 2002, section 3.1] γ_n = n u/(1 − n u)
///
/// Accuracy  a bound while terms < 2⁵⁰ (test: Rounding.BoundsSumsOfProducts)
[[nodiscard]] constexpr double rounding(std::ptrdiff_t terms) {
  return 2.0 * static_cast<double>(terms + 4) * unit_roundoff;
}

// Decimal numbers with few digits, which keep documents and figures short.

/// The nearest number with `digits` significant decimal digits, ties to even, as the double nearest to that
/// decimal, so that it prints in as few; numbers beyond 1e±16, infinite ones and NaN stay as they are.
///
/// Requires  1 <= digits <= 15
///
/// Accuracy  as printf's %.*g and back, but for values within a rounding of a tie
///           (test: Rounded.PrintsInFewDigits)
[[nodiscard]] inline double rounded_to_digits(double value, int digits) {
  const double size = std::abs(value);
  if (!(size > 1e-16 && size < 1e16)) return value;
  const int decimals = digits - 1 - static_cast<int>(std::floor(std::log10(size)));
  // Powers of ten to 1e22 are doubles, and one operation on them rounds once.
  if (std::abs(decimals) > 22) return value;
  const double scale = std::pow(10.0, std::abs(decimals));
  return decimals >= 0 ? std::nearbyint(value * scale) / scale : std::nearbyint(value / scale) * scale;
}

/// The nearest number with four decimals, as many as a screen shows of a coordinate.
[[nodiscard]] inline double rounded_to_four_decimals(double value) {
  constexpr double scale = 1e4;
  return std::round(value * scale) / scale;
}

/// A running sum whose error does not grow with the number of terms (Neumaier's variant of
/// Kahan's sum): |computed − Σx| <= 2u |Σx| + O(n u²) Σ|x|, u = 2^-53.
class CompensatedSum {
 public:
  void add(double term) {
    const double sum = sum_ + term;
    compensation_ += std::abs(sum_) >= std::abs(term) ? (sum_ - sum) + term : (term - sum) + sum_;
    sum_ = sum;
  }
  [[nodiscard]] double value() const { return sum_ + compensation_; }

 private:
  double sum_ = 0.0;
  double compensation_ = 0.0;
};

/// Σ values, compensated.
[[nodiscard]] inline double sum(std::span<const double> values) {
  CompensatedSum total;
  for (const double value : values) total.add(value);
  return total.value();
}

/// Mean of `values`, compensated.
///
/// Requires  values not empty
[[nodiscard]] inline double mean(std::span<const double> values) {
  return sum(values) / static_cast<double>(values.size());
}

/// Subtracts the mean from `values`, repeatedly: each pass subtracts the rounding error of the previous mean,
/// which matters if almost all entries agree to the last place.
///
/// Accuracy  4 u (|y| + mean |y|) an entry y of the exact result (test: Sum.CentersNearlyEqualEntries)
///
/// Requires  no sum of the values overflows
inline void center(std::span<double> values) {
  for (int pass = 0; pass < 3; ++pass) {
    const double middle = mean(values);
    for (double& value : values) value -= middle;
  }
}

/// aᵀb, summed in order.
///
/// Accuracy  `rounding(a.size())` of Σ|a b|, see above
///
/// Requires  a.size() == b.size()
[[nodiscard]] inline double plain_dot(std::span<const double> a, std::span<const double> b) {
  double total = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) total += a[i] * b[i];
  return total;
}

/// Σ (values − center)², compensated.
[[nodiscard]] inline double sum_of_squares(std::span<const double> values, double center = 0.0) {
  CompensatedSum total;
  for (const double value : values) total.add((value - center) * (value - center));
  return total.value();
}

/// sqrt(Σ values²), compensated, without overflow or underflow of the squares.
///
/// Accuracy  8 u relative, where the result is a normal number (test: Sum.NormSurvivesExtremeScales)
[[nodiscard]] inline double euclidean_norm(std::span<const double> values) {
  double largest = 0.0;
  for (const double value : values) {
    if (!(std::abs(value) <= largest)) largest = std::abs(value);
    if (std::isnan(largest)) return largest;
  }
  if (largest == 0.0 || !std::isfinite(largest)) return largest;
  // A power of two, so that scaling does not round.
  const int exponent = std::ilogb(largest);
  CompensatedSum total;
  for (const double value : values) {
    const double scaled = std::scalbn(value, -exponent);
    total.add(scaled * scaled);
  }
  return std::scalbn(std::sqrt(total.value()), exponent);
}

/// Pearson's correlation coefficient; NaN if either does not vary.
///
/// Requires  as many in `a` as in `b`, at least one
[[nodiscard]] inline double correlation(std::vector<double> a, std::vector<double> b) {
  center(a);
  center(b);
  CompensatedSum product;
  for (std::size_t i = 0; i < a.size(); ++i) product.add(a[i] * b[i]);
  return product.value() / (euclidean_norm(a) * euclidean_norm(b));
}

}  // namespace normscope
