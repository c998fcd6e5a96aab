#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/analysis/ranges.hpp>

namespace normscope::analysis {
namespace {

constexpr double unit = std::numeric_limits<double>::epsilon() / 2.0;

/// Calls `each` with the entries of Π(g ⊙ w) of the block that begins at `begin`; returns |g ⊙ w|².
template <typename Each>
double projected(const NormSpec& spec, std::span<const double> row, std::size_t begin, const Each& each) {
  const std::size_t n = spec.block_width();
  double sum = 0.0;
  double square = 0.0;
  for (std::size_t i = begin; i < begin + n; ++i) {
    const double entry = spec.gain_at(i) * row[i];
    sum += entry;
    square += entry * entry;
  }
  const double mean = spec.centers() ? sum / static_cast<double>(n) : 0.0;
  for (std::size_t i = begin; i < begin + n; ++i) each(i, spec.gain_at(i) * row[i] - mean);
  return square;
}

}  // namespace

double Interval::size() const { return std::max(std::abs(lower), std::abs(upper)); }

Interval interval(const NormSpec& spec, std::span<const double> row, double bias) {
  double centre = bias;
  double sizes = std::abs(bias);  // sum of the magnitudes of all terms
  for (std::size_t i = 0; i < spec.bias.size(); ++i) {
    centre += row[i] * spec.bias[i];
    sizes += std::abs(row[i] * spec.bias[i]);
  }
  double half = 0.0;
  double variance = 0.0;
  if (spec.elementwise()) {
    for (std::size_t i = 0; i < spec.width; ++i) half += std::abs(spec.gain_at(i) * row[i]);
    sizes += half;
    variance = half * half;  // saturated everywhere
  } else {
    const std::size_t n = spec.block_width();
    const double directions = static_cast<double>(n) - (spec.centers() ? 1.0 : 0.0);
    for (std::size_t begin = 0; begin < spec.width; begin += n) {
      double square = 0.0;
      const double whole =
          projected(spec, row, begin, [&](std::size_t, double entry) { square += entry * entry; });
      sizes += spec.radius() * std::sqrt(whole);
      if (directions < 1.0) continue;
      half += spec.radius() * std::sqrt(square);
      variance += spec.squared_radius() * square / directions;
    }
  }
  const double rounding = (4.0 * static_cast<double>(spec.width) + 64.0) * unit * sizes;
  return {.lower = centre - half - rounding,
          .upper = centre + half + rounding,
          .typical = std::sqrt(centre * centre + variance)};
}

void attaining_input(const NormSpec& spec, std::span<const double> row, bool upper, std::span<double> x) {
  const double sign = upper ? 1.0 : -1.0;
  if (spec.elementwise()) {
    // tanh and erf are 1 to the last bit from 40 on.
    const double slope = spec.alpha == 0.0 ? 1.0 : spec.alpha;
    for (std::size_t i = 0; i < spec.width; ++i) {
      const double wanted = sign * spec.gain_at(i) * row[i];
      x[i] = wanted == 0.0 ? 0.0 : (std::copysign(40.0, wanted) - spec.shift) / slope;
    }
    return;
  }
  const std::size_t n = spec.block_width();
  for (std::size_t begin = 0; begin < spec.width; begin += n) {
    double largest = 0.0;
    projected(spec, row, begin, [&](std::size_t i, double entry) {
      x[i] = sign * entry;
      largest = std::max(largest, std::abs(entry));
    });
    // eps changes the output by at most n 2^-53 of itself.
    const double factor = largest > 0.0 ? std::max(1.0, std::sqrt(spec.eps)) * 0x1p+26 / largest : 0.0;
    for (std::size_t i = begin; i < begin + n; ++i) x[i] *= factor;
  }
}

}  // namespace normscope::analysis
