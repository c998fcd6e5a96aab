#include "coordinates.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <normscope/core/parallel.hpp>
#include <normscope/numeric/eigen/decompositions.hpp>
#include <normscope/numeric/eigen/row_major.hpp>
#include <normscope/numeric/sum.hpp>

#include "subspace.hpp"

namespace normscope::signature {
namespace {

constexpr std::size_t rows_of_block = 64;
/// Rows between two reports of progress.
constexpr std::size_t rows_reported = 4096;

std::uint64_t hash_of(std::span<const double> values) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const double value : values) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof word);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 32U;
  }
  return hash;
}

/// One block of rows: their coordinates and hashes, and the squared distance of the first from the subspace.
void project(const Outputs& outputs, const Subspace& subspace, std::size_t first, std::size_t count,
             double* points, std::uint64_t* hashes, double& off) {
  thread_local std::vector<double> block;
  block.resize(count * subspace.tokens);
  for (std::size_t k = 0; k < count; ++k) {
    const std::span<double> row(block.data() + k * subspace.tokens, subspace.tokens);
    outputs.whole_row(first + k, row);
    hashes[k] = hash_of(row);
    center(row);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] -= subspace.middle[i];
  }
  const MatrixView<const double> basis(subspace.basis.data(), subspace.tokens, subspace.rank);
  multiply(MatrixView<const double>(block.data(), count, subspace.tokens), basis,
           MatrixView<double>(points, count, subspace.rank));
  CompensatedSum squares;
  for (std::size_t i = 0; i < subspace.tokens; ++i) {
    double rest = block[i];
    for (std::size_t k = 0; k < subspace.rank; ++k) rest -= points[k] * basis.row(i)[k];
    squares.add(rest * rest);
  }
  off = squares.value();
}

void whiten(std::size_t rank, unsigned threads, Coordinates& result) {
  const double count = static_cast<double>(result.rows);
  std::vector<CompensatedSum> sums(rank);
  for (std::size_t k = 0; k < result.points.size(); ++k) sums[k % rank].add(result.points[k]);
  result.mean.resize(static_cast<Eigen::Index>(rank));
  std::vector<double> mean(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    mean[i] = sums[i].value() / count;
    result.mean[static_cast<Eigen::Index>(i)] = mean[i];
  }
  for (std::size_t k = 0; k < result.points.size(); ++k) result.points[k] -= mean[k % rank];
  std::vector<double> covariance(rank * rank);
  const Factor<double> points(result.view(rank));
  product(points.transposed(), points, MatrixView<double>(covariance.data(), rank, rank), threads);
  const auto size = static_cast<Eigen::Index>(rank);
  const SymmetricEigen eigen = symmetric_eigen(row_major(covariance, size, size) / count);
  const Eigen::VectorXd scale = eigen.values.cwiseMax(1e-300).cwiseSqrt();
  result.colour = eigen.vectors * scale.asDiagonal();
  std::vector<double> inverse(rank * rank);
  row_major(inverse, size, size) = eigen.vectors * scale.cwiseInverse().asDiagonal();
  parallel_for(result.rows, 512, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<double> block;
    for (std::size_t first = begin; first < end; first += rows_of_block) {
      const std::size_t now = std::min(rows_of_block, end - first);
      double* const at = result.points.data() + first * rank;
      block.assign(at, at + now * rank);
      multiply(MatrixView<const double>(block.data(), now, rank),
               MatrixView<const double>(inverse.data(), rank, rank), MatrixView<double>(at, now, rank));
    }
  });
}

}  // namespace

Coordinates coordinates(const Outputs& outputs, const Subspace& subspace, const ExtractOptions& options) {
  Coordinates result{.rows = outputs.rows()};
  result.points.resize(result.rows * subspace.rank);
  std::vector<std::uint64_t> hashes(result.rows);
  std::vector<double> off;
  for (std::size_t start = 0; start < result.rows; start += rows_reported) {
    options.progress("coordinates", start, result.rows);
    const std::size_t rows = std::min(rows_reported, result.rows - start);
    const std::size_t blocks = (rows + rows_of_block - 1) / rows_of_block;
    const std::size_t before = off.size();
    off.resize(before + blocks);
    parallel_for(blocks, 2, options.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t block = begin; block < end; ++block) {
        const std::size_t first = start + block * rows_of_block;
        project(outputs, subspace, first, std::min(rows_of_block, start + rows - first),
                result.points.data() + first * subspace.rank, hashes.data() + first, off[before + block]);
      }
    });
  }
  options.progress("coordinates", result.rows, result.rows);
  std::sort(hashes.begin(), hashes.end());
  result.distinct = static_cast<std::size_t>(std::unique(hashes.begin(), hashes.end()) - hashes.begin());
  const std::size_t left = subspace.tokens - 1 - subspace.rank;
  if (left > 0) result.off = std::sqrt(mean(off) / static_cast<double>(left));
  whiten(subspace.rank, options.threads, result);
  return result;
}

}  // namespace normscope::signature
