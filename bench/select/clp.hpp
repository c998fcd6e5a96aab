#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::bench {

/// 1 for each key of `sample` that CLP finds in the hull of the others, 0 for the rest.
[[nodiscard]] std::vector<double> inside_by_programs(MatrixView<const double> keys,
                                                     const std::vector<std::size_t>& sample);

}  // namespace normscope::bench
