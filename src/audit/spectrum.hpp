#pragma once

#include <cstddef>
#include <vector>

namespace normscope::audit {

/// About `points` of the ranks 1 … count: the first ones all, then evenly spaced in the logarithm,
/// the last always among them.
[[nodiscard]] std::vector<std::size_t> thinned_ranks(std::size_t count, std::size_t points);

}  // namespace normscope::audit
