#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <span>
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

/// Text from a file, so that it can neither control a terminal nor look like other text: control characters
/// and bytes that are not UTF-8 as \xNN; what breaks a line, changes the direction of text, or is invisible,
/// as \uNNNN. The report page does the same (explorer/shared/printable.ts).
[[nodiscard]] std::string printable(std::string_view text);

// Bounds as text: rounded outward, so that the printed number is a bound too.
namespace detail {

/// `value` as printf's %g with 1 to 15 `digits`; if that is below `value` for `side` +1, or above it for −1,
/// the next number with as many digits in that direction.
inline std::string outward(double value, int digits, int side) {
  const auto printed = [&](double number) {
    char text[40];
    std::snprintf(text, sizeof text, "%.*g", digits, number);
    return std::string(text);
  };
  std::string text = printed(value);
  if (!std::isfinite(value) || side * std::strtod(text.c_str(), nullptr) >= side * value) return text;
  char scientific[40];
  std::snprintf(scientific, sizeof scientific, "%.*e", digits - 1, value);
  std::string mantissa = scientific;
  const std::size_t e = mantissa.find('e');
  int exponent = std::atoi(mantissa.c_str() + e + 1) - (digits - 1);
  mantissa.erase(e);
  mantissa.erase(std::remove(mantissa.begin(), mantissa.end(), '.'), mantissa.end());
  long long next = std::atoll(mantissa.c_str());
  // Below a power of ten, numbers with as many digits lie ten times as close.
  if (side * next < 0 && mantissa.find_first_not_of("-10") == std::string::npos &&
      mantissa.find('1') == mantissa.rfind('1')) {
    next *= 10;
    exponent -= 1;
  }
  next += side;
  std::snprintf(scientific, sizeof scientific, "%llde%d", next, exponent);
  return printed(std::strtod(scientific, nullptr));
}

}  // namespace detail

/// An upper bound with 1 to 15 significant digits, rounded up.
///
/// Accuracy  read back, no less than `value`; the nearest text if that is so
///           (test: BoundText.LiesOutsideWhatItPrints)
[[nodiscard]] inline std::string at_most(double value, int digits) {
  return detail::outward(value, digits, 1);
}

/// A lower bound, rounded down.
///
/// Accuracy  read back, no more than `value`; the nearest text if that is so
///           (test: BoundText.LiesOutsideWhatItPrints)
[[nodiscard]] inline std::string at_least(double value, int digits) {
  return detail::outward(value, digits, -1);
}

/// The name that `wanted` probably stands for, to be suggested in a message; empty if none is similar.
///
/// A name is similar if one of the two begins or ends with the other and is at most three times as long
/// (`ln_f.weight` for `transformer.ln_f.weight`), or if at most a third of the characters of `wanted` have to
/// be inserted, removed, replaced or swapped with their neighbour. Case is ignored. The one that needs the
/// fewest changes is returned, of several the first; a missing or additional part counts as two changes.
///
/// Cost      O(total length of the names); nothing is suggested for words of more than 128 characters
[[nodiscard]] std::string_view nearest_name(std::string_view wanted, std::span<const std::string_view> names);

}  // namespace normscope
