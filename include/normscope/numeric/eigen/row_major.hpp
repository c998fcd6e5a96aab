#pragma once

#include <cstddef>
#include <vector>

#include <Eigen/Core>

#include <normscope/core/assert.hpp>

/// Row-major arrays as matrices of Eigen, for modules that use it; not installed, as no public header needs
/// it.
namespace normscope {

using RowMajorMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The array as a matrix of rows × columns, without a copy.
[[nodiscard]] inline Eigen::Map<const RowMajorMatrix> row_major(const std::vector<double>& values,
                                                                Eigen::Index rows, Eigen::Index columns) {
  NORMSCOPE_ASSERT(values.size() == static_cast<std::size_t>(rows * columns));
  return {values.data(), rows, columns};
}
[[nodiscard]] inline Eigen::Map<RowMajorMatrix> row_major(std::vector<double>& values, Eigen::Index rows,
                                                          Eigen::Index columns) {
  NORMSCOPE_ASSERT(values.size() == static_cast<std::size_t>(rows * columns));
  return {values.data(), rows, columns};
}

}  // namespace normscope
