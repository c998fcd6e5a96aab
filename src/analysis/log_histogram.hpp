#pragma once

#include <cstdint>
#include <map>

namespace normscope::analysis {

/// Counts of positive numbers by the size of their logarithms, for quantiles.
class LogHistogram {
 public:
  void add(double value);
  /// The smallest value that at least `fraction` of the numbers do not exceed.
  ///
  /// Accuracy  half a bin, 1.1 %
  ///
  /// Requires  some number was added
  [[nodiscard]] double quantile(double fraction) const;

 private:
  static constexpr int bins_per_octave = 32;

  std::map<int, std::uint64_t> bins_{};
  std::uint64_t total_ = 0;
};

}  // namespace normscope::analysis
