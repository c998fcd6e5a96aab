#pragma once

#include <cstddef>

#include <Eigen/Core>

#include <normscope/core/matrix_vector.hpp>

/// Products of a matrix of Eigen and a vector, not installed, as no public header needs them.
namespace normscope {

/// A x and Aᵀ x by `multiply_vector`, for the reason that `product` gives; A may be a block of columns.
[[nodiscard]] inline Eigen::VectorXd times(const Eigen::Ref<const Eigen::MatrixXd>& a,
                                           const Eigen::Ref<const Eigen::VectorXd>& x) {
  Eigen::VectorXd result(a.rows());
  multiply_vector(
      Factor<double>(a.data(), static_cast<std::size_t>(a.rows()), static_cast<std::size_t>(a.cols()), 1,
                     static_cast<std::size_t>(a.outerStride())),
      {x.data(), static_cast<std::size_t>(x.size())},
      {result.data(), static_cast<std::size_t>(result.size())});
  return result;
}
[[nodiscard]] inline Eigen::VectorXd transposed_times(const Eigen::Ref<const Eigen::MatrixXd>& a,
                                                      const Eigen::Ref<const Eigen::VectorXd>& x) {
  Eigen::VectorXd result(a.cols());
  multiply_vector(
      Factor<double>(a.data(), static_cast<std::size_t>(a.cols()), static_cast<std::size_t>(a.rows()),
                     static_cast<std::size_t>(a.outerStride())),
      {x.data(), static_cast<std::size_t>(x.size())},
      {result.data(), static_cast<std::size_t>(result.size())});
  return result;
}

}  // namespace normscope
