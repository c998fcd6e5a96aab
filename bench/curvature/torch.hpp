#pragma once

#include <vector>

#include "bench.hpp"

namespace normscope::bench {

/// libtorch's Hessian measure Σ_i ‖∂²y_i/∂x²‖² of LayerNorm at each row of `x`: a double backward pass for
/// each output and input, which is what its own `hessian` does.
[[nodiscard]] Contender automatic_hessian(const std::vector<double>& x, std::size_t width, double eps);

/// The fastest way that was found in libtorch: one double backward pass per output, over a copy of the row
/// for each input. From a width of some hundreds on, all of its time is arithmetic.
[[nodiscard]] Contender batched_hessian(const std::vector<double>& x, std::size_t width, double eps);

}  // namespace normscope::bench
