#include "triangle.hpp"

#include <algorithm>

namespace normscope::selectability {

Eigen::MatrixXd triangle_of(const Eigen::MatrixXd& matrix) {
  const Eigen::Index least = std::min(matrix.rows(), matrix.cols());
  if (least == 0) return Eigen::MatrixXd::Zero(0, matrix.cols());
  const Eigen::HouseholderQR<Eigen::MatrixXd> factors(matrix);
  return factors.matrixQR().topRows(least).triangularView<Eigen::Upper>();
}

}  // namespace normscope::selectability
