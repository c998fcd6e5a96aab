#include "least_squares.hpp"

#include <cmath>
#include <cstddef>

#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>

namespace normscope::lab::dense {

std::vector<double> least_squares(MatrixView<const double> a, const std::vector<double>& b) {
  const std::size_t columns = a.width();
  NORMSCOPE_ASSERT(b.size() == a.rows());
  std::vector<double> transposed(columns * a.rows());
  for (std::size_t row = 0; row < a.rows(); ++row) {
    for (std::size_t column = 0; column < columns; ++column)
      transposed[column * a.rows() + row] = a.row(row)[column];
  }
  std::vector<double> factor(columns * columns);
  multiply(MatrixView<const double>(transposed.data(), columns, a.rows()), a,
           MatrixView<double>(factor.data(), columns, columns));
  std::vector<double> x(columns);
  for (std::size_t column = 0; column < columns; ++column) {
    for (std::size_t row = 0; row < a.rows(); ++row)
      x[column] += transposed[column * a.rows() + row] * b[row];
  }
  // L below the diagonal, LLᵀ = AᵀA; then L z = Aᵀb and Lᵀ x = z.
  const auto dot = [&](std::size_t i, std::size_t j, std::size_t length) {
    const double* left = factor.data() + i * columns;
    const double* right = factor.data() + j * columns;
    double sum = 0.0;
    for (std::size_t k = 0; k < length; ++k) sum += left[k] * right[k];
    return sum;
  };
  for (std::size_t i = 0; i < columns; ++i) {
    for (std::size_t j = 0; j < i; ++j)
      factor[i * columns + j] = (factor[i * columns + j] - dot(i, j, j)) / factor[j * columns + j];
    const double pivot = factor[i * columns + i] - dot(i, i, i);
    NORMSCOPE_ASSERT(pivot > 0.0);
    factor[i * columns + i] = std::sqrt(pivot);
    for (std::size_t k = 0; k < i; ++k) x[i] -= factor[i * columns + k] * x[k];
    x[i] /= factor[i * columns + i];
  }
  for (std::size_t i = columns; i-- > 0;) {
    x[i] /= factor[i * columns + i];
    for (std::size_t k = 0; k < i; ++k) x[k] -= factor[i * columns + k] * x[i];
  }
  return x;
}

}  // namespace normscope::lab::dense
