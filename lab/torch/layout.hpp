#pragma once

#include "grouped/network.hpp"

namespace normscope::lab::grouped {

/// The tensors of a network in the order of the forward pass. Matrices are in × out and initialized normally
/// with deviation 1/sqrt(inputs), smaller if they write to a residual stream; kernels are out × in × 3 × 3.
[[nodiscard]] std::vector<Parameter> layout(const Shape& shape);

}  // namespace normscope::lab::grouped
