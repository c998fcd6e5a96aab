#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <Eigen/Core>

#include <normscope/core/assert.hpp>
#include <normscope/core/view.hpp>

/// Row-major arrays as matrices of Eigen, and the reverse, for modules that use it; not installed, as no
/// public header needs it.
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

/// A row-major matrix that converts to a MatrixView.
class RowMajor {
 public:
  explicit RowMajor(const Eigen::MatrixXd& matrix) : rows_(matrix) {}
  // NOLINTNEXTLINE(google-explicit-constructor): implicit, to be passed as an argument
  operator MatrixView<const double>() const {
    return {rows_.data(), static_cast<std::size_t>(rows_.rows()), static_cast<std::size_t>(rows_.cols())};
  }

 private:
  RowMajorMatrix rows_;
};

[[nodiscard]] inline std::span<const double> as_span(const Eigen::VectorXd& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

}  // namespace normscope
