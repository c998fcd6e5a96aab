#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace normscope {

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
/// Accuracy  `rounding(a.size())` of Σ|a b|, see numeric/rounding.hpp
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
