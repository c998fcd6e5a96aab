#include "subspace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope::signature {
namespace {

constexpr std::size_t rows_of_block = 64;
/// Blocks between two reports of progress.
constexpr std::size_t blocks_reported = 64;

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

void whiten(std::size_t rank, unsigned threads, const RowSlices& slices, Coordinates& result) {
  const double count = static_cast<double>(result.rows);
  const std::size_t own = slices.own_slices();
  const auto blocks = slices.blocks(slices.rows());  // one a slice, none of an empty one
  const auto rows_of = [&](const RowSlices::Block& block) {
    return MatrixView<double>(result.points.data() + (block.first - slices.begin()) * rank, block.rows, rank);
  };
  std::vector<std::vector<double>> sums(own, std::vector<double>(rank));
  for (const RowSlices::Block& block : blocks) {
    std::vector<CompensatedSum> of_slice(rank);
    const MatrixView<double> rows = rows_of(block);
    for (std::size_t row = 0; row < block.rows; ++row) {
      for (std::size_t i = 0; i < rank; ++i) of_slice[i].add(rows.row(row)[i]);
    }
    for (std::size_t i = 0; i < rank; ++i) sums[block.slice][i] = of_slice[i].value();
  }
  std::vector<double> mean(rank);
  slices.sum(sums, mean);
  for (double& value : mean) value /= count;
  result.mean = Eigen::Map<const Eigen::VectorXd>(mean.data(), static_cast<Eigen::Index>(rank));
  for (std::size_t k = 0; k < result.points.size(); ++k) result.points[k] -= mean[k % rank];
  for (std::vector<double>& of_slice : sums) of_slice.assign(rank * rank, 0.0);
  for (const RowSlices::Block& block : blocks) {
    const Factor<double> points(MatrixView<const double>(rows_of(block).data(), block.rows, rank));
    product(points.transposed(), points, MatrixView<double>(sums[block.slice].data(), rank, rank), threads);
  }
  std::vector<double> covariance(rank * rank);
  slices.sum(sums, covariance);
  const auto size = static_cast<Eigen::Index>(rank);
  const SymmetricEigen eigen = symmetric_eigen(row_major(covariance, size, size) / count);
  const Eigen::VectorXd scale = eigen.values.cwiseMax(1e-300).cwiseSqrt();
  result.colour = eigen.vectors * scale.asDiagonal();
  std::vector<double> inverse(rank * rank);
  row_major(inverse, size, size) = eigen.vectors * scale.cwiseInverse().asDiagonal();
  parallel_for(slices.end() - slices.begin(), 512, threads, [&](std::size_t begin, std::size_t end) {
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

Coordinates coordinates(const Outputs& outputs, const Subspace& subspace, const RowSlices& slices,
                        const ExtractOptions& options) {
  Coordinates result{.rows = outputs.rows()};
  result.points.resize((slices.end() - slices.begin()) * subspace.rank);
  std::vector<std::uint64_t> hashes(result.rows);
  const std::vector<RowSlices::Block> blocks = slices.blocks(rows_of_block);
  std::vector<double> off(blocks.size());
  for (std::size_t start = 0; start < blocks.size(); start += blocks_reported) {
    options.progress("coordinates", blocks[start].first - slices.begin(), slices.end() - slices.begin());
    const std::size_t now = std::min(blocks_reported, blocks.size() - start);
    parallel_for(now, 2, options.threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t k = start + begin; k < start + end; ++k) {
        const RowSlices::Block& block = blocks[k];
        project(outputs, subspace, block.first, block.rows,
                result.points.data() + (block.first - slices.begin()) * subspace.rank,
                hashes.data() + block.first, off[k]);
      }
    });
  }
  options.progress("coordinates", result.rows, result.rows);
  slices.gather(hashes);
  std::sort(hashes.begin(), hashes.end());
  result.distinct = static_cast<std::size_t>(std::unique(hashes.begin(), hashes.end()) - hashes.begin());
  const std::size_t left = subspace.tokens - 1 - subspace.rank;
  // Squared distances of some rows, and how many.
  std::vector<std::vector<double>> distances(slices.own_slices(), std::vector<double>(2));
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    distances[blocks[k].slice][0] += off[k];
    distances[blocks[k].slice][1] += 1.0;
  }
  std::array<double, 2> total{};
  slices.sum(distances, total);
  if (left > 0) result.off = std::sqrt(total[0] / total[1] / static_cast<double>(left));
  whiten(subspace.rank, options.threads, slices, result);
  return result;
}

}  // namespace normscope::signature
