#include <normscope/nets/dataset.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>

namespace normscope::nets {
namespace {

/// A label is a class number; more classes than this indicate an error in the file.
constexpr double label_limit = 0x1p24;

}  // namespace

void validate(std::string_view who, const Dataset& data) {
  if (data.rows() == 0 || data.width == 0) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: the samples are {} x {}, expected at least one row and one feature", who,
                            data.rows(), data.width));
  }
  if (data.x.size() != data.rows() * data.width) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: {} labels and {} entries of width {}, expected one label per row", who,
                            data.rows(), data.x.size(), data.width));
  }
  if (data.classes < 2) {
    throw Error(ErrorCode::Argument, fmt::format("{}: {} class, expected at least 2", who, data.classes));
  }
  for (std::size_t i = 0; i < data.x.size(); ++i) {
    if (!std::isfinite(data.x[i])) {
      throw Error(ErrorCode::Argument, fmt::format("{}: row {} holds {}, expected finite numbers", who,
                                                   i / data.width, shown(data.x[i])));
    }
  }
  for (std::size_t i = 0; i < data.rows(); ++i) {
    if (data.labels[i] >= data.classes) {
      throw Error(ErrorCode::Argument, fmt::format("{}: the label of row {} is {}, expected less than {}",
                                                   who, i, data.labels[i], data.classes));
    }
  }
}

Dataset dataset(std::string_view who, std::size_t width, std::vector<double> x,
                const std::vector<double>& labels) {
  Dataset data{.width = width, .x = std::move(x)};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (!(labels[i] >= 0.0 && labels[i] < label_limit) || labels[i] != std::floor(labels[i])) {
      throw Error(ErrorCode::Argument,
                  fmt::format("{}: the label of row {} is {}, expected an integer from 0 to {}", who, i,
                              labels[i], label_limit - 1.0));
    }
    data.labels.push_back(static_cast<std::uint32_t>(labels[i]));
    data.classes = std::max<std::size_t>(data.classes, data.labels.back() + 1U);
  }
  validate(who, data);
  return data;
}

Conflicts conflicts(const Dataset& data) {
  const auto bytes = [&](std::size_t row) {
    return std::string_view(reinterpret_cast<const char*>(data.x.data() + row * data.width),
                            data.width * sizeof(double));
  };
  std::unordered_map<std::string_view, std::size_t> first_rows;
  first_rows.reserve(data.rows());
  Conflicts result;
  for (std::size_t row = 0; row < data.rows(); ++row) {
    const std::size_t first = first_rows.emplace(bytes(row), row).first->second;
    if (data.labels[first] == data.labels[row]) continue;
    if (result.rows++ == 0) {
      result.first = row;
      result.of = first;
    }
  }
  return result;
}

}  // namespace normscope::nets
