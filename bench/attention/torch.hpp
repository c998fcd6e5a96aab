#pragma once

#include <cstddef>
#include <vector>

#include "bench.hpp"

namespace normscope::bench {

/// Queries, keys and values of heads, (3, heads, width, length), and the gradient by the output, (heads,
/// width, length).
struct Heads {
  std::size_t heads = 0;
  std::size_t width = 0;
  std::size_t length = 0;
  double dropout = 0.0;
  std::vector<float> parts{};
  std::vector<float> by_out{};
};

/// Causal attention and its gradient by libtorch's operations, as a model without a fused kernel writes them;
/// the answer is the gradient by `parts`, none with dropout, which draws other numbers.
[[nodiscard]] Contender torch(const Heads& heads);

}  // namespace normscope::bench
