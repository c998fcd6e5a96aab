#pragma once

#include <Eigen/Core>

namespace normscope {

/// `matrix = value` for a value of another size. Eigen's assignment frees the old entries before it allocates
/// the new ones; where that fails, the destructor would free the old ones again.
template <typename Matrix, typename Value>
void replace(Matrix& matrix, const Eigen::MatrixBase<Value>& value) {
  matrix = Matrix(value);
}

}  // namespace normscope
