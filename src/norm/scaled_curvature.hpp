#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

namespace normscope::norm::detail {

/// Like `curvature_of_groups`, but with the measures of row i divided by 2^result[i], so that they can be
/// compared when they exceed the range of a double: at eps = 0, H of 2^k x is 2^-4k times H of x.
[[nodiscard]] std::vector<int> scaled_curvature_of_groups(const NormSpec& spec, MatrixView<const double> x,
                                                          std::span<const std::size_t> groups,
                                                          MatrixView<double> measures, unsigned threads);

}  // namespace normscope::norm::detail
