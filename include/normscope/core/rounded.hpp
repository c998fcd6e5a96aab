#pragma once

#include <cmath>

/// Decimal numbers with few digits, which keep documents and figures short.
namespace normscope {

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
