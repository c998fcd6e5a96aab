#pragma once

#include <cstddef>

#include <normscope/core/view.hpp>

namespace normscope {

/// A matrix factor: element (i, j) is at data[i · row_step + j · column_step], so a transpose is a view of
/// the same memory.
template <typename T>
struct Factor {
  const T* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t row_step = 0;
  std::size_t column_step = 1;

  Factor() = default;
  Factor(const T* from, std::size_t row_count, std::size_t column_count, std::size_t step,
         std::size_t step_between_columns = 1)
      : data(from),
        rows(row_count),
        columns(column_count),
        row_step(step),
        column_step(step_between_columns) {}
  // NOLINTNEXTLINE(google-explicit-constructor): implicit conversion from a matrix
  Factor(MatrixView<const T> matrix)
      : Factor(matrix.data(), matrix.rows(), matrix.width(), matrix.stride()) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Factor(MatrixView<T> matrix) : Factor(MatrixView<const T>(matrix)) {}

  [[nodiscard]] Factor transposed() const { return {data, columns, rows, column_step, row_step}; }
};

/// Whether a product replaces its target or is added to it.
enum class Into { replace, add };

/// c = a b or c += a b, on the calling thread; the rows or columns of c can be split among threads.
///
/// Shapes    a (m × k), b (k × n), c (m × n); c overlaps neither factor
///
/// Accuracy  |computed − exact| <= γ Σ |a_ip| |b_pj|, γ = (k + k/256 + 1) u, per entry (plus |c| u for add,
///           plus k times the least positive number where products underflow);
///           an entry depends only on its row of a and its column of b, not on m, n or its position
///           (tests: Product.IsWithinItsBound, Product.EntriesDoNotDependOnTheirNeighbours)
///
/// Cost      2 m k n operations near the machine's peak; buffers of about 2 MB a thread, kept between calls
void multiply(Factor<double> a, Factor<double> b, MatrixView<double> c, Into into = Into::replace);
void multiply(Factor<float> a, Factor<float> b, MatrixView<float> c, Into into = Into::replace);

}  // namespace normscope
