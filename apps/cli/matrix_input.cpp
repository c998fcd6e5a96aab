#include "matrix_input.hpp"

#include <cmath>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "command.hpp"

namespace normscope::cli {

MatrixInput read_matrix(const files::OpenedArray& array, Rows rows) {
  if (array.shape().empty() || array.shape().back() == 0 || (array.elements() == 0 && rows == Rows::some)) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: is empty, expected rows x width", printable(array.name())));
  }
  MatrixInput result;
  result.width = array.shape().back();
  result.rows = array.elements() / result.width;
  result.values = array.values();
  expect_finite(array.name(), result.view());
  return result;
}

void expect_finite(const std::string& name, MatrixView<const double> rows) {
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    for (std::size_t i = 0; i < rows.width(); ++i) {
      const double value = rows.row(row)[i];
      if (std::isfinite(value)) continue;
      throw Error(ErrorCode::Argument, fmt::format("{}: row {} has {} in column {}, expected finite numbers",
                                                   printable(name), row, shown(value), i));
    }
  }
}

}  // namespace normscope::cli
