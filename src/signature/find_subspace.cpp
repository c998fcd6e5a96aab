#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/signature/extract.hpp>

#include "subspace.hpp"

namespace normscope::signature {
namespace {

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
