#include "products.hpp"

#include <Eigen/Dense>

namespace normscope::selectability {

void multiply(const float* a, std::size_t rows, const float* b, std::size_t columns, std::size_t width,
              float* scores) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto index = [](std::size_t n) { return static_cast<Eigen::Index>(n); };
  const Eigen::Map<const Matrix> left(a, index(rows), index(width));
  const Eigen::Map<const Matrix> right(b, index(columns), index(width));
  Eigen::Map<Matrix>(scores, index(rows), index(columns)).noalias() = left * right.transpose();
}

}  // namespace normscope::selectability
