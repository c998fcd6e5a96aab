#include <cmath>

#include "elementwise.hpp"

/// f = tanh [Zhu et al. 2025].
namespace normscope::norm::detail {
namespace {

/// 1 − tanh² = 4 e^(−2|t|)/(1 + e^(−2|t|))², without cancellation.
double tanh_slope(double t) {
  const double e = std::exp(-2.0 * std::abs(t));
  return 4.0 * e / ((1.0 + e) * (1.0 + e));
}

}  // namespace

const Activation dyt{.value = [](double t) { return std::tanh(t); },
                     .slope = tanh_slope,
                     .curvature = [](double t) { return -2.0 * std::tanh(t) * tanh_slope(t); }};

}  // namespace normscope::norm::detail
