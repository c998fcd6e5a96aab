#pragma once

#include <Eigen/Dense>

namespace normscope::selectability {

/// The triangle R of A = Q R: |R x| = |A x| for every x, up to rounding.
/// Shapes    A (m × n), R (min(m, n) × n)
[[nodiscard]] Eigen::MatrixXd triangle_of(const Eigen::MatrixXd& matrix);

}  // namespace normscope::selectability
