#pragma once

#include <string>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/files/array.hpp>

namespace normscope::cli {

/// Rows of finite numbers from an ARRAY on the command line: its last axis is the width, all other axes are
/// rows.
struct MatrixInput {
  std::vector<double> values;
  std::size_t rows = 0;
  std::size_t width = 0;

  [[nodiscard]] MatrixView<const double> view() const { return {values.data(), rows, width}; }
};

/// Whether an array without rows is accepted.
enum class Rows { some, any };

/// Reads the rows of an array; error messages contain its name.
[[nodiscard]] MatrixInput read_matrix(const files::OpenedArray& array, Rows rows = Rows::some);

/// Throws unless every number of the array is finite.
///
/// Errors    Argument, naming the first number that is not
void expect_finite(const std::string& name, MatrixView<const double> rows);

}  // namespace normscope::cli
