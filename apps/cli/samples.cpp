#include "samples.hpp"

#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "command.hpp"

namespace normscope::cli {

MatrixInput read_samples(const files::OpenedArray& array) {
  const std::size_t rows = array.shape().empty() ? 0 : array.shape()[0];
  if (rows == 0 || array.elements() == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: has no samples, expected rows x width", printable(array.name())));
  }
  return {array.values(), rows, array.elements() / rows};
}

std::vector<std::int64_t> read_labels(const files::OpenedArray& array) {
  if (array.shape().size() != 1) {
    throw Error(ErrorCode::Shape, fmt::format("{}: has {} axes, expected one axis of labels",
                                              printable(array.name()), array.shape().size()));
  }
  const std::vector<double> values = array.values();
  std::vector<std::int64_t> labels;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    if (!(std::abs(value) <= 0x1p53 && value == std::floor(value))) {
      throw Error(ErrorCode::Argument, fmt::format("{}: label {} is {}, expected an integer",
                                                   printable(array.name()), i, shown(value)));
    }
    labels.push_back(static_cast<std::int64_t>(value));
  }
  return labels;
}

}  // namespace normscope::cli
