#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/norm/curvature.hpp>
#include <normscope/numeric/sum.hpp>

#include "scaled_curvature.hpp"

namespace normscope::norm {
namespace {

/// Column `count` of `measures`, with row i divided by 2^exponents[i], relative to column `plain`.
GroupCurvature compared(MatrixView<const double> measures, const std::vector<int>& exponents,
                        std::size_t count, std::size_t plain) {
  GroupCurvature result;
  CompensatedSum mean;
  double infinite = 0.0;
  CompensatedSum ratio;
  result.least = std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < measures.rows(); ++row) {
    const double with_groups = measures.row(row)[count];
    const double without = measures.row(row)[plain];
    if (!std::isfinite(with_groups) || !std::isfinite(without) || without <= 0.0) continue;
    ++result.rows;
    const double measure = std::scalbn(with_groups, exponents[row]);
    // A compensated sum of infinities is NaN.
    if (std::isinf(measure)) infinite = measure;
    mean.add(std::isinf(measure) ? 0.0 : measure);
    ratio.add(with_groups / without);
    result.least = std::min(result.least, with_groups / without);
    result.largest = std::max(result.largest, with_groups / without);
  }
  if (result.rows == 0) {
    result.mean = result.ratio = result.least = result.largest = std::numeric_limits<double>::quiet_NaN();
    return result;
  }
  result.mean = infinite + mean.value() / static_cast<double>(result.rows);
  result.ratio = ratio.value() / static_cast<double>(result.rows);
  return result;
}

}  // namespace

std::vector<GroupCurvature> compare_groups(const NormSpec& spec, MatrixView<const double> x,
                                           std::span<const std::size_t> groups, unsigned threads,
                                           MatrixView<double> of_rows) {
  if (of_rows.data() != nullptr && (of_rows.rows() != x.rows() || of_rows.width() != groups.size())) {
    throw Error(ErrorCode::Shape, fmt::format("curvature: measures of rows are {} x {}, expected {} x {}",
                                              of_rows.rows(), of_rows.width(), x.rows(), groups.size()));
  }
  std::vector<std::size_t> counts(groups.begin(), groups.end());
  counts.push_back(1);
  std::vector<double> values(x.rows() * counts.size());
  const MatrixView<double> measures(values.data(), x.rows(), counts.size());
  const std::vector<int> exponents = detail::scaled_curvature_of_groups(spec, x, counts, measures, threads);
  std::vector<GroupCurvature> results;
  NormSpec grouped = spec;
  for (std::size_t k = 0; k < groups.size(); ++k) {
    results.push_back(compared(measures, exponents, k, groups.size()));
    grouped.groups = groups[k];
    results.back().groups = groups[k];
    results.back().bound = curvature_ratio_bound(grouped);
  }
  for (std::size_t row = 0; row < of_rows.rows(); ++row) {
    for (std::size_t k = 0; k < groups.size(); ++k) {
      of_rows.row(row)[k] = std::scalbn(measures.row(row)[k], exponents[row]);
    }
  }
  return results;
}

std::vector<std::size_t> curving_group_counts(NormKind kind, std::size_t width) {
  if (is_elementwise(kind)) return {1};
  std::vector<std::size_t> counts;
  for (std::size_t count = 1; count * least_curved_block(kind) <= width; ++count) {
    if (width % count == 0) counts.push_back(count);
  }
  return counts;
}

}  // namespace normscope::norm
