#pragma once

#include "network.hpp"

namespace normscope::lab::grouped {

/// The tensors of a network in the order in which its forward pass meets them. Matrices are in × out and
/// normal with deviation 1/sqrt(inputs), less where they write into a residual stream; kernels are
/// out × in × 3 × 3.
[[nodiscard]] std::vector<Parameter> layout(const Shape& shape);

}  // namespace normscope::lab::grouped
