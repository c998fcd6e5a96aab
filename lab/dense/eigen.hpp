#pragma once

#include <cstddef>
#include <vector>

namespace normscope::lab::dense {

struct Eigen {
  std::vector<double> values{};  ///< descending
};

/// Eigenvalues of a symmetric matrix by cyclic Jacobi rotations: slow, and nothing but rotations.
///
/// Source    [Jacobi 1846]; [Golub, Van Loan, Matrix Computations, 8.5]
///
/// Shapes    matrix (width, width)
///
/// Accuracy  1e-14 of the largest, times the width (test: Dense.EigenvaluesOfKnownMatrices)
///
/// Cost      some ten sweeps of 3 width³ flops each
[[nodiscard]] Eigen symmetric_eigen(std::vector<double> matrix, std::size_t width);

}  // namespace normscope::lab::dense
