#include "gain_shape.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "median.hpp"

namespace normscope::analysis {
namespace {

/// How far a ratio is from 1, in either direction.
double distance_from_one(double ratio) {
  return ratio == 0.0 ? std::numeric_limits<double>::infinity() : std::abs(std::log(ratio));
}

}  // namespace

void add_gain_shape(std::span<const double> gain, NormReport& report) {
  std::vector<double> magnitudes;
  for (const double g : gain) {
    if (g != 0.0) magnitudes.push_back(std::abs(g));
  }
  if (magnitudes.empty()) return;
  for (const double magnitude : magnitudes) {
    ++report.gain_sizes[static_cast<int>(std::floor(gain_bins_per_octave * std::log2(magnitude)))];
  }
  const double typical = median(std::move(magnitudes));
  const std::size_t block = (gain.size() + most_gain_blocks - 1) / most_gain_blocks;
  for (std::size_t begin = 0; begin < gain.size(); begin += block) {
    GainBlock furthest{begin, std::min(begin + block, gain.size()), begin, 1.0};
    for (std::size_t i = begin; i < furthest.end; ++i) {
      const double ratio = std::abs(gain[i]) / typical;
      if (i > begin && distance_from_one(ratio) <= distance_from_one(furthest.ratio)) continue;
      furthest.coordinate = i;
      furthest.ratio = ratio;
    }
    report.gain_blocks.push_back(furthest);
  }
}

}  // namespace normscope::analysis
