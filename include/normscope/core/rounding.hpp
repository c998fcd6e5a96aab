#pragma once

#include <cmath>
#include <cstddef>
#include <limits>

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

}  // namespace normscope
