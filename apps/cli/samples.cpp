#include "samples.hpp"

#include <cmath>

#include <fmt/core.h>

#include <normscope/checkpoint/array.hpp>
#include <normscope/core/error.hpp>

#include "command.hpp"

namespace normscope::cli {

MatrixInput read_samples(const std::string& name) {
  checkpoint::Array array = checkpoint::read_array(name);
  const std::size_t rows = array.shape.empty() ? 0 : array.shape[0];
  if (rows == 0 || array.values.empty()) {
    throw Error(ErrorCode::Shape, fmt::format("{}: has no samples, expected rows x width", printable(name)));
  }
  const std::size_t width = array.values.size() / rows;
  return {std::move(array.values), rows, width};
}

std::vector<std::int64_t> read_labels(const std::string& name) {
  const checkpoint::Array array = checkpoint::read_array(name);
  if (array.shape.size() != 1) {
    throw Error(ErrorCode::Shape, fmt::format("{}: has {} axes, expected one axis of labels", printable(name),
                                              array.shape.size()));
  }
  std::vector<std::int64_t> labels;
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    const double value = array.values[i];
    if (!(std::abs(value) <= 0x1p53 && value == std::floor(value))) {
      throw Error(ErrorCode::Argument,
                  fmt::format("{}: label {} is {}, expected an integer", printable(name), i, shown(value)));
    }
    labels.push_back(static_cast<std::int64_t>(value));
  }
  return labels;
}

}  // namespace normscope::cli
