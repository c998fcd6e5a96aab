#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace normscope {

/// "1 norm", "2 norms": a count with its noun, for messages.
[[nodiscard]] inline std::string counted(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

/// The text of a number in messages: "inf", "-inf" or "nan" if it is not finite, otherwise six digits.
[[nodiscard]] inline std::string shown(double value) {
  if (std::isnan(value)) return "nan";
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace normscope
