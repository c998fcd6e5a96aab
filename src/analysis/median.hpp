#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace normscope::analysis {

/// The middle of the values, the mean of the middle two for an even number; 0 for none.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return 0.5 * *middle + 0.5 * *std::max_element(values.begin(), middle);
}

}  // namespace normscope::analysis
