#include "log_histogram.hpp"

#include <cmath>

namespace normscope::analysis {

void LogHistogram::add(double value) {
  // Below every normal number: blocks without deviation, at eps = 0.
  const double exponent = value > 0.0 ? std::log2(value) : -1100.0;
  ++bins_[static_cast<int>(std::floor(exponent * bins_per_octave))];
  ++total_;
}

double LogHistogram::quantile(double fraction) const {
  const double wanted = fraction * static_cast<double>(total_);
  std::uint64_t passed = 0;
  for (const auto& [bin, count] : bins_) {
    passed += count;
    if (static_cast<double>(passed) >= wanted) return std::exp2((bin + 0.5) / bins_per_octave);
  }
  return 0.0;
}

}  // namespace normscope::analysis
