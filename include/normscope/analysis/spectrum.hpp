#pragma once

#include <cstddef>
#include <vector>

namespace normscope::analysis {

/// About `points` of the ranks 1 … count: all of the first ones, then spaced evenly in the logarithm,
/// including the last.
[[nodiscard]] std::vector<std::size_t> thinned_ranks(std::size_t count, std::size_t points);

}  // namespace normscope::analysis
