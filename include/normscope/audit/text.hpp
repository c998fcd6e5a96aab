#pragma once

#include <cmath>
#include <string>

#include <fmt/format.h>

#include <normscope/core/bound_text.hpp>
#include <normscope/core/text.hpp>

namespace normscope::audit {

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

}  // namespace normscope::audit
