#pragma once

#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::lab::dense {

/// The x for which |A x − b| is least, from the normal equations AᵀA x = Aᵀb by Cholesky's factorization.
///
/// Shapes    a (rows × columns), b (rows), result (columns)
///
/// Requires  independent columns
///
/// Accuracy  the square of the condition number times 1e-15, times the number of columns (test:
///           Dense.LeastSquaresAreOrthogonalToTheColumns)
///
/// Cost      2 rows columns² + columns³/3 flops
[[nodiscard]] std::vector<double> least_squares(MatrixView<const double> a, const std::vector<double>& b);

}  // namespace normscope::lab::dense
