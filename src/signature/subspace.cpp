#include "subspace.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/signature/extract.hpp>

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

constexpr std::size_t first_look = 512;
/// Singular values of noise stay below this many times their estimate.
constexpr double above_noise = 4.0;
/// Ratio of neighbouring singular values near the noise that counts as the end of the subspace.
constexpr double clear_step = 5.0;
constexpr double near_noise = 50.0;

/// Rows with mean 0, evenly spread over all rows, and the size of a singular value due to their rounding.
struct Sample {
  std::vector<double> rows{};
  double noise = 0.0;
};

Sample sample(const Outputs& outputs, std::size_t count, unsigned threads) {
  const std::size_t tokens = outputs.vocabulary();
  Sample result{std::vector<double>(count * tokens)};
  std::vector<double> squares(count);
  parallel_for(count, 8, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      const std::span<double> row(result.rows.data() + k * tokens, tokens);
      outputs.whole_row(k * outputs.rows() / count, row);
      squares[k] = sum_of_squares(row);
      center(row);
    }
  });
  const double size = std::sqrt(sum(squares) / static_cast<double>(count * tokens));
  const double ratio = static_cast<double>(tokens) / static_cast<double>(count);
  result.noise = outputs.precision().unit * size * (1.0 + std::sqrt(ratio));
  return result;
}

/// The index at which singular values end and noise begins. `values` does not contain the last ones, which
/// are zero because means were subtracted.
std::size_t end_of(std::span<const double> values, double noise) {
  const double least = std::max(above_noise * noise, negligible * values.front());
  std::size_t end = 0;
  while (end < values.size() && values[end] > least) ++end;
  std::size_t best = end;
  double step = clear_step;
  for (std::size_t k = 1; k < values.size(); ++k) {
    if (values[k - 1] > near_noise * least || values[k] > least) continue;
    if (values[k - 1] < least / near_noise || values[k - 1] < negligible * values.front()) break;
    if (values[k - 1] / std::max(values[k], 1e-300) < step) continue;
    step = values[k - 1] / std::max(values[k], 1e-300);
    best = k;
  }
  return best;
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

Subspace find_subspace(const Outputs& outputs, unsigned threads, const Progress& progress, std::size_t rank) {
  if (!outputs.whole()) {
    throw Error(ErrorCode::Argument,
                fmt::format("{}: has ids, expected rows with a number for every token", outputs.name()));
  }
  if (outputs.rows() < 3) {
    throw Error(ErrorCode::Argument,
                fmt::format("{}: has {} rows, expected at least 3", outputs.name(), outputs.rows()));
  }
  const std::size_t tokens = outputs.vocabulary();
  for (std::size_t count = std::min(outputs.rows(), first_look);;
       count = std::min(outputs.rows(), 2 * count)) {
    progress("subspace", count, outputs.rows());
    Sample looked_at = sample(outputs, count, threads);
    Subspace result{.tokens = tokens, .middle = std::vector<double>(tokens), .rows = count};
    std::vector<CompensatedSum> sums(tokens);
    for (std::size_t k = 0; k < looked_at.rows.size(); ++k) sums[k % tokens].add(looked_at.rows[k]);
    for (std::size_t i = 0; i < tokens; ++i) result.middle[i] = sums[i].value() / static_cast<double>(count);
    for (std::size_t k = 0; k < looked_at.rows.size(); ++k) looked_at.rows[k] -= result.middle[k % tokens];
    const ThinSvd svd =
        thin_svd(MatrixView<const double>(looked_at.rows.data(), count, tokens), negligible, threads);
    const double scale = 1.0 / std::sqrt(static_cast<double>(count));
    result.singular_values = svd.all;
    for (double& value : result.singular_values) value *= scale;
    result.noise = looked_at.noise;
    result.rank =
        svd.rank == 0
            ? 0
            : std::min(svd.rank, end_of(std::span(result.singular_values).first(std::min(tokens, count) - 1),
                                        result.noise));
    if (rank > 0) result.rank = std::min(svd.rank, rank);
    if (2 * result.rank + 64 > count && count < outputs.rows()) continue;
    for (std::size_t i = 0; i < tokens; ++i) {
      const auto row = svd.right.begin() + static_cast<std::ptrdiff_t>(i * svd.rank);
      result.basis.insert(result.basis.end(), row, row + static_cast<std::ptrdiff_t>(result.rank));
    }
    result.fills = result.rank + 1 >= std::min(tokens, count);
    progress("subspace", outputs.rows(), outputs.rows());
    return result;
  }
}

}  // namespace normscope::signature
