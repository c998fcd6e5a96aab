#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

namespace normscope::norm::detail {

/// As `curvature_of_groups`, but the measures of row i are over 2^result[i], so that they can be compared
/// where they themselves are beyond the range of a double: H of 2^k x at eps = 0 is 2^-4k H of x.
[[nodiscard]] std::vector<int> scaled_curvature_of_groups(const NormSpec& spec, MatrixView<const double> x,
                                                          std::span<const std::size_t> groups,
                                                          MatrixView<double> measures, unsigned threads);

}  // namespace normscope::norm::detail
