#include <normscope/core/svd.hpp>

#include <algorithm>
#include <limits>

#include <Eigen/SVD>

#include <normscope/core/eigen/row_major.hpp>

namespace normscope {
namespace {

using Eigen::Index;

std::vector<double> to_row_major(const Eigen::MatrixXd& matrix) {
  std::vector<double> result(static_cast<std::size_t>(matrix.size()));
  row_major(result, matrix.rows(), matrix.cols()) = matrix;
  return result;
}

}  // namespace

Svd singular_value_decomposition(Factor<double> a, SingularVectors wanted) {
  if (a.rows == 0 || a.columns == 0) return {};
  const Eigen::MatrixXd matrix =
      Eigen::Map<const Eigen::MatrixXd, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>(
          a.data, static_cast<Index>(a.rows), static_cast<Index>(a.columns),
          {static_cast<Index>(a.column_step), static_cast<Index>(a.row_step)});
  const bool both = wanted == SingularVectors::both;
  if (!matrix.allFinite()) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::size_t rank = std::min(a.rows, a.columns);
    return {std::vector<double>(a.rows * rank, nan), std::vector<double>(rank, nan),
            std::vector<double>(both ? a.columns * rank : 0, nan)};
  }
  const Eigen::BDCSVD<Eigen::MatrixXd> svd(
      matrix, Eigen::ComputeThinU | (both ? Eigen::ComputeThinV : Eigen::DecompositionOptions(0)));
  const Eigen::VectorXd& values = svd.singularValues();
  return {to_row_major(svd.matrixU()),
          {values.data(), values.data() + values.size()},
          both ? to_row_major(svd.matrixV()) : std::vector<double>()};
}

}  // namespace normscope
