#pragma once

#include <vector>

#include "bench.hpp"

namespace normscope::bench {

/// libtorch's Hessian measure Σ_i ‖∂²y_i/∂x²‖² of LayerNorm at each row of `x`: a double backward pass for
/// each output and input, which is what its own `hessian` does.
[[nodiscard]] Contender automatic_hessian(const std::vector<double>& x, std::size_t width, double eps);

/// The same, the quickest way found: one double backward pass an output, over a copy of the row for each
/// input. All of its time is arithmetic once the width is in the hundreds.
[[nodiscard]] Contender batched_hessian(const std::vector<double>& x, std::size_t width, double eps);

}  // namespace normscope::bench
