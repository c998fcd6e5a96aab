#include <cmath>

#include "elementwise.hpp"

/// f = erf [Chen et al. 2025].
namespace normscope::norm::detail {
namespace {

/// 2/√π
constexpr double steepest = 1.1283791670955126;
/// exp(−t²) is 0 in double beyond.
constexpr double farthest = 28.0;

/// 2/√π e^(−t²); the rounding of t² would be multiplied by t².
double erf_slope(double t) {
  if (std::abs(t) > farthest) return 0.0;
  const double square = t * t;
  return steepest * std::exp(-square) * (1.0 - std::fma(t, t, -square));
}

}  // namespace

const Activation derf{
    .value = [](double t) { return std::erf(t); },
    .slope = erf_slope,
    .curvature = [](double t) { return std::abs(t) > farthest ? 0.0 : -2.0 * t * erf_slope(t); }};

}  // namespace normscope::norm::detail
