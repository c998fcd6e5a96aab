#pragma once

#include <cstddef>
#include <span>
#include <vector>

/// Plateaus of a loss curve, after which the loss falls: the phase transitions that Winsor 2022 describes.
namespace normscope::lab::ln_nets {

struct Plateau {
  std::size_t last = 0;  ///< its last step
  double loss = 0.0;     ///< the median of its last 600 steps
};

/// Plateaus that end with a fall. Losses are replaced by medians over 300 steps, so that the noise of batches
/// and single spikes do not count. The loss is on a plateau if these medians stay within 15 % of their own
/// median for 600 steps, and falls if within another 300 steps one is at most 0.7 times the least of the
/// plateau. Constant, linear, exponential and hyperbolic curves have none (test:
/// Plateaus.SteadyDecreaseHasNone).
///
/// Requires  `loss` of every `every`-th step, every >= 1
[[nodiscard]] std::vector<Plateau> plateaus(std::span<const double> loss, std::size_t every);

}  // namespace normscope::lab::ln_nets
