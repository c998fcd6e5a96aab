#include "least_squares.hpp"

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>

namespace normscope::lab::dense {
namespace {

TEST(Dense, LeastSquaresAreOrthogonalToTheColumns) {
  constexpr std::size_t rows = 90;
  constexpr std::size_t columns = 40;
  Random random(7);
  std::vector<double> a(rows * columns);
  for (double& value : a) value = random.normal();
  std::vector<double> b(rows);
  for (double& value : b) value = random.normal();
  const MatrixView<const double> view(a.data(), rows, columns);
  const std::vector<double> x = least_squares(view, b);
  std::vector<double> left = b;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) left[row] -= view.row(row)[column] * x[column];
  }
  for (std::size_t column = 0; column < columns; ++column) {
    double along = 0.0;
    for (std::size_t row = 0; row < rows; ++row) along += view.row(row)[column] * left[row];
    EXPECT_NEAR(along, 0.0, 1e-11) << column;
  }
}

}  // namespace
}  // namespace normscope::lab::dense
