#pragma once

#include <cmath>
#include <span>
#include <string_view>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

/// A block of a row in the plain definitions of the norm and its derivatives.
namespace normscope::norm::detail {

/// A positive number, possibly outside a double's range, or zero.
class Length {
 public:
  /// `scaled` divided by `balance`, a power of two.
  Length(double scaled, double balance) : length_(scaled / balance), digits_(std::frexp(scaled, &exponent_)) {
    exponent_ -= std::ilogb(balance);
  }
  [[nodiscard]] bool is_zero() const { return digits_ == 0.0; }
  /// value / length, in range whenever the quotient is.
  [[nodiscard]] double divide(double value) const {
    if (std::isnormal(length_)) return value / length_;
    int exponent = 0;
    const double digits = std::frexp(value, &exponent);
    return std::scalbn(digits / digits_, exponent - exponent_);
  }

 private:
  double length_;     ///< infinite, subnormal or zero if a double cannot hold it
  int exponent_ = 0;  ///< length = digits · 2^exponent
  double digits_;
};

/// Computes q = z/s, |q| <= 1, with z = x − mean (layer) or z = x, and returns s = sqrt(|z|² + R² eps). Both
/// are zero if all deviations are zero and eps = 0.
///
/// Shapes    x, q of the same size, a block of `spec`
///
/// Requires  q is x itself or does not overlap it
Length relative_deviations(const NormSpec& spec, std::span<const double> x, std::span<double> q);

/// Throws unless `vectors` has the shape of `x`.
void require_vectors(std::string_view who, MatrixView<const double> x, MatrixView<const double> vectors);

/// to = from times the gain of features `begin` on.
void multiply_by_gain(const NormSpec& spec, std::size_t begin, std::span<const double> from,
                      std::span<double> to);

}  // namespace normscope::norm::detail
