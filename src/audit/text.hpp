#pragma once

#include <cmath>
#include <string>

#include <fmt/format.h>

#include <normscope/core/text.hpp>

namespace normscope::audit {

/// Three significant digits, without an exponent where people would not write one.
[[nodiscard]] inline std::string number(double value) {
  if (std::isinf(value)) return "more than 1e308";
  return std::abs(value) >= 100.0 && std::abs(value) < 1e6 ? fmt::format("{:.0f}", value)
                                                           : fmt::format("{:.3g}", value);
}

}  // namespace normscope::audit
