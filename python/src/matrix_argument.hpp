#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include <nanobind/nanobind.h>

#include <normscope/core/view.hpp>

namespace normscope::python {

/// An argument's rows in float64.
struct Matrix {
  std::vector<double> values{};
  std::size_t rows = 0;
  std::size_t width = 0;

  [[nodiscard]] MatrixView<const double> view() const { return {values.data(), rows, width}; }
};

/// Errors    TypeError; ValueError for any number of axes but two
[[nodiscard]] Matrix matrix_of(std::string_view who, std::string_view name, const nanobind::object& given);

/// Samples along the first axis, the other axes flattened.
/// Errors    TypeError; ValueError for none
[[nodiscard]] Matrix samples_of(std::string_view who, std::string_view name, const nanobind::object& given);

}  // namespace normscope::python
