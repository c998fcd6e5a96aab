#pragma once

#include <cmath>
#include <string>

#include <fmt/format.h>

namespace normscope::audit {

/// Three significant digits, without an exponent where people would not write one.
[[nodiscard]] inline std::string number(double value) {
  return std::abs(value) >= 100.0 && std::abs(value) < 1e6 ? fmt::format("{:.0f}", value)
                                                           : fmt::format("{:.3g}", value);
}

/// "1 gain", "2 gains".
[[nodiscard]] inline std::string counted(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace normscope::audit
