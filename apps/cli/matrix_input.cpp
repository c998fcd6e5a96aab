#include "matrix_input.hpp"

#include <cmath>

#include <fmt/core.h>

#include <normscope/checkpoint/array.hpp>
#include <normscope/core/error.hpp>

#include "command.hpp"

namespace normscope::cli {

MatrixInput read_matrix(const std::string& name, Rows rows) {
  checkpoint::Array array = checkpoint::read_array(name);
  if (array.shape.empty() || array.shape.back() == 0 || (array.values.empty() && rows == Rows::some)) {
    throw Error(ErrorCode::Shape, fmt::format("{}: is empty, expected rows x width", printable(name)));
  }
  MatrixInput result;
  result.width = array.shape.back();
  result.rows = array.values.size() / result.width;
  result.values = std::move(array.values);
  expect_finite(name, result.view());
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
