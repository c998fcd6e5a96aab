#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::proof {

/// The maximum of log softmax over few rows, up to rounding.
struct SoftmaxPeak {
  std::vector<double> point{};  ///< |u| <= 1
  std::size_t steps = 0;
};

/// Cost of a step for this many rows, in operations.
[[nodiscard]] double newton_step_cost(std::size_t rows, std::size_t width);

/// max over |u| <= 1 of log softmax(rows u + offsets)_target by Newton steps in the ball. The logits are
/// first scaled down so far that the first step is good, and then increased by a constant factor; each
/// maximum is the start for the next.
///
/// Source    [Boyd, Vandenberghe 2004, section 11.3] for the path; [Moré, Sorensen 1983] for a step
///
/// Shapes    rows (any >= 1, width), offsets (rows)
///
/// Cost      a few steps for each factor of 4 in the logits' size
[[nodiscard]] SoftmaxPeak log_softmax_peak(MatrixView<const double> rows, std::span<const double> offsets,
                                           std::size_t target, double gap, std::size_t most_steps);

}  // namespace normscope::proof
