#include "written_array.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "quote.hpp"

namespace normscope::checkpoint {
namespace {

double parse_number(const std::string& word, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0' || !std::isfinite(value)) {
    throw Error(ErrorCode::Argument,
                fmt::format("array: {}: {} is not a finite number", quote(text), quote(word)));
  }
  return value;
}

}  // namespace

std::optional<Array> parse_written(const std::string& text) {
  if (text.find_first_not_of("0123456789+-.eE,;") != std::string::npos) return std::nullopt;
  if (text.find_first_of(",;") == std::string::npos) return std::nullopt;
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

}  // namespace normscope::checkpoint
