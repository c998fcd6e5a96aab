#pragma once

#include <cmath>
#include <string>

#include <fmt/format.h>

#include <normscope/core/text.hpp>

namespace normscope::analysis {

/// Three significant digits, without an exponent for numbers of ordinary size.
[[nodiscard]] inline std::string number(double value) {
  if (std::isinf(value)) return "more than 1e308";
  return std::abs(value) >= 100.0 && std::abs(value) < 1e6 ? fmt::format("{:.0f}", value)
                                                           : fmt::format("{:.3g}", value);
}

/// An upper bound in the format of `number`, rounded up.
[[nodiscard]] inline std::string number_at_most(double value) {
  if (std::isinf(value)) return number(value);
  return std::abs(value) >= 100.0 && std::abs(value) < 1e6 ? number(std::ceil(value)) : at_most(value, 3);
}

/// A lower bound in the format of `number`, rounded down.
[[nodiscard]] inline std::string number_at_least(double value) {
  if (std::isinf(value)) return number(value);
  return std::abs(value) >= 100.0 && std::abs(value) < 1e6 ? number(std::floor(value)) : at_least(value, 3);
}

/// A lower bound of e^`exponent`, for a positive exponent: in the format of `number` below a million, a
/// power of ten above, "10⁷⁶", which may be larger than any double.
///
/// Accuracy  no more than e^`exponent` (test: AuditText.WritesPowersOfEAsLowerBounds)
[[nodiscard]] inline std::string exp_at_least(double exponent) {
  // Takes away more than the rounding of exp and of the quotient can add.
  constexpr double below = 1.0 - 1e-15;
  const double value = std::exp(exponent) * below;
  if (value < 1e6) return number_at_least(value);
  constexpr const char* digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string power = "10";
  for (const char digit : fmt::format("{:.0f}", std::floor(exponent / std::log(10.0) * below))) {
    power += digits[digit - '0'];
  }
  return power;
}

}  // namespace normscope::analysis
