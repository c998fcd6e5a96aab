#include <normscope/files/written_array.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/quote.hpp>

namespace normscope::files {
namespace {

constexpr const char* digits = "0123456789+-.eE";

double parse_number(const std::string& word, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0' || !std::isfinite(value)) {
    throw Error(ErrorCode::Argument,
                fmt::format("array: {}: {} is not a finite number", quote(text), quote(word)));
  }
  // A value that underflows to zero would change the meaning, such as a gain that erases its feature.
  if (value == 0.0 &&
      word.substr(0, word.find_first_of("eE")).find_first_of("123456789") != std::string::npos) {
    throw Error(ErrorCode::Argument,
                fmt::format("array: {}: {} is nearer to zero than any float64", quote(text), quote(word)));
  }
  return value;
}

/// nan, inf or infinity, in any case and with any sign.
bool is_not_finite(std::string_view word) {
  if (word.starts_with('+') || word.starts_with('-')) word.remove_prefix(1);
  std::string lower(word);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower == "nan" || lower == "inf" || lower == "infinity";
}

/// Whether the words between commas and semicolons consist of the characters of numbers.
bool is_written(const std::string& text) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(",;", at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word.find_first_not_of(digits) != std::string::npos && !is_not_finite(word)) return false;
    at = end + 1;
  }
  return true;
}

}  // namespace

bool is_one_number(const std::string& text) {
  return !text.empty() && text.find_first_of(",;") == std::string::npos && is_written(text);
}

std::optional<Array> parse_written(const std::string& text) {
  if (text.find_first_of(",;") == std::string::npos || !is_written(text)) return std::nullopt;
  Array array;
  std::uint64_t rows = 0;
  std::uint64_t width = 0;
  for (std::size_t at = 0; at <= text.size(); ++rows) {
    const std::size_t row_end = std::min(text.find(';', at), text.size());
    std::uint64_t count = 0;
    for (; at <= row_end; ++count) {
      const std::size_t end = std::min(text.find(',', at), row_end);
      array.values.push_back(parse_number(text.substr(at, end - at), text));
      at = end + 1;
    }
    if (rows == 0) width = count;
    if (count != width) {
      throw Error(ErrorCode::Shape, fmt::format("array: {}: row {} has {} numbers, the first one {}",
                                                quote(text), rows, count, width));
    }
  }
  if (text.find(';') == std::string::npos) {
    array.shape = {width};
  } else {
    array.shape = {rows, width};
  }
  return array;
}

}  // namespace normscope::files
