#include "subspace.hpp"

#include <algorithm>
#include <cmath>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>

namespace normscope::signature {
namespace {

using Eigen::Index;

/// Rows or columns of a product that a thread takes at a time.
constexpr std::size_t panel = 64;

Index signed_size(std::size_t size) { return static_cast<Index>(size); }

std::vector<double> row_major_of(const Eigen::MatrixXd& matrix) {
  std::vector<double> result(static_cast<std::size_t>(matrix.size()));
  row_major(result, matrix.rows(), matrix.cols()) = matrix;
  return result;
}

Eigen::MatrixXd gram(Factor<double> a, unsigned threads) {
  std::vector<double> result(a.columns * a.columns);
  product(a.transposed(), a, MatrixView<double>(result.data(), a.columns, a.columns), threads);
  return row_major(result, signed_size(a.columns), signed_size(a.columns));
}

/// Roots of the eigenvalues in descending order, clamped at zero.
std::vector<double> roots(const SymmetricEigen& eigen) {
  std::vector<double> result;
  for (Index i = eigen.values.size(); i-- > 0;) result.push_back(std::sqrt(std::max(0.0, eigen.values[i])));
  return result;
}

std::size_t above(const std::vector<double>& values, double cut) {
  const double least = values.empty() ? 0.0 : cut * values.front();
  return static_cast<std::size_t>(
      std::find_if(values.begin(), values.end(), [&](double value) { return !(value > least); }) -
      values.begin());
}

ThinSvd by_gram(Factor<double> a, double cut, unsigned threads) {
  ThinSvd result;
  const SymmetricEigen first = symmetric_eigen(gram(a, threads));
  result.all = roots(first);
  const std::size_t rank = above(result.all, cut);
  result.rank = rank;
  if (rank == 0) return result;
  const Index k = signed_size(rank);
  const Eigen::MatrixXd v = first.vectors.rightCols(k).rowwise().reverse();
  const Eigen::VectorXd scale = Eigen::Map<const Eigen::VectorXd>(result.all.data(), k);
  const std::vector<double> scaled = row_major_of(v * scale.cwiseInverse().asDiagonal());
  std::vector<double> rough(a.rows * rank);
  const MatrixView<double> rough_view(rough.data(), a.rows, rank);
  product(a, MatrixView<const double>(scaled.data(), a.columns, rank), rough_view, threads);
  // The columns are nearly orthonormal; decomposing their Gram matrix removes the deviation.
  const SymmetricEigen second = symmetric_eigen(gram(rough_view, threads));
  const Eigen::VectorXd stretch = second.values.cwiseMax(0.0).cwiseSqrt();
  const std::vector<double> core =
      row_major_of(stretch.asDiagonal() * second.vectors.transpose() * scale.asDiagonal());
  const Svd last = singular_value_decomposition(MatrixView<const double>(core.data(), rank, rank));
  const std::vector<double> turn =
      row_major_of(second.vectors * stretch.cwiseInverse().asDiagonal() * row_major(last.left, k, k));
  result.left.resize(a.rows * rank);
  product(rough_view, MatrixView<const double>(turn.data(), rank, rank),
          MatrixView<double>(result.left.data(), a.rows, rank), threads);
  result.values = last.values;
  result.right = row_major_of(v * row_major(last.right, k, k));
  return result;
}

/// The first `rank` columns.
std::vector<double> columns_of(const std::vector<double>& matrix, std::size_t width, std::size_t rank) {
  std::vector<double> result;
  for (std::size_t first = 0; first < matrix.size(); first += width) {
    const auto row = matrix.begin() + static_cast<std::ptrdiff_t>(first);
    result.insert(result.end(), row, row + static_cast<std::ptrdiff_t>(rank));
  }
  return result;
}

}  // namespace

void product(Factor<double> a, Factor<double> b, MatrixView<double> c, unsigned threads) {
  // An entry does not depend on the part in which it is computed.
  if (c.rows() >= c.width()) {
    parallel_for(c.rows(), 4 * panel, threads, [&](std::size_t begin, std::size_t end) {
      multiply(Factor<double>(a.data + begin * a.row_step, end - begin, a.columns, a.row_step, a.column_step),
               b, MatrixView<double>(c.data() + begin * c.stride(), end - begin, c.width(), c.stride()));
    });
    return;
  }
  parallel_for(c.width(), 4 * panel, threads, [&](std::size_t begin, std::size_t end) {
    multiply(a,
             Factor<double>(b.data + begin * b.column_step, b.rows, end - begin, b.row_step, b.column_step),
             MatrixView<double>(c.data() + begin, c.rows(), end - begin, c.stride()));
  });
}

ThinSvd thin_svd(Factor<double> a, double cut, unsigned threads) {
  if (a.rows < a.columns) {
    ThinSvd result = thin_svd(a.transposed(), cut, threads);
    std::swap(result.left, result.right);
    return result;
  }
  if (a.rows > 4096 || a.columns > 128) return by_gram(a, cut, threads);
  const Svd svd = singular_value_decomposition(a);
  ThinSvd result;
  result.all = svd.values;
  result.rank = above(svd.values, cut);
  result.left = columns_of(svd.left, a.columns, result.rank);
  result.right = columns_of(svd.right, a.columns, result.rank);
  result.values.assign(svd.values.begin(), svd.values.begin() + static_cast<std::ptrdiff_t>(result.rank));
  return result;
}

}  // namespace normscope::signature
