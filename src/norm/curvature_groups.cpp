#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/norm/curvature.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::norm {
namespace {

/// Column `count` of `measures` beside its column `plain`.
GroupCurvature compared(MatrixView<const double> measures, std::size_t count, std::size_t plain) {
  GroupCurvature result;
  CompensatedSum mean;
  CompensatedSum ratio;
  result.least = std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < measures.rows(); ++row) {
    const double with_groups = measures.row(row)[count];
    const double without = measures.row(row)[plain];
    if (!std::isfinite(with_groups) || !std::isfinite(without) || without <= 0.0) continue;
    ++result.rows;
    mean.add(with_groups);
    ratio.add(with_groups / without);
    result.least = std::min(result.least, with_groups / without);
    result.largest = std::max(result.largest, with_groups / without);
  }
  if (result.rows == 0) {
    result.mean = result.ratio = result.least = result.largest = std::numeric_limits<double>::quiet_NaN();
    return result;
  }
  result.mean = mean.value() / static_cast<double>(result.rows);
  result.ratio = ratio.value() / static_cast<double>(result.rows);
  return result;
}

}  // namespace

std::vector<GroupCurvature> compare_groups(const NormSpec& spec, MatrixView<const double> x,
                                           std::span<const std::size_t> groups, unsigned threads) {
  std::vector<std::size_t> counts(groups.begin(), groups.end());
  counts.push_back(1);
  std::vector<double> values(x.rows() * counts.size());
  const MatrixView<double> measures(values.data(), x.rows(), counts.size());
  curvature_of_groups(spec, x, counts, measures, threads);
  std::vector<GroupCurvature> results;
  NormSpec grouped = spec;
  for (std::size_t k = 0; k < groups.size(); ++k) {
    results.push_back(compared(measures, k, groups.size()));
    grouped.groups = groups[k];
    results.back().groups = groups[k];
    results.back().bound = curvature_ratio_bound(grouped);
  }
  return results;
}

std::vector<std::size_t> curving_group_counts(NormKind kind, std::size_t width) {
  std::vector<std::size_t> counts;
  for (std::size_t count = 1; count * least_curved_block(kind) <= width; ++count) {
    if (width % count == 0) counts.push_back(count);
  }
  return counts;
}

}  // namespace normscope::norm
