#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include <normscope/analysis/report.hpp>

namespace normscope::analysis {

/// The `count` entries of largest magnitude, in descending order.
[[nodiscard]] inline std::vector<Component> largest_components(const std::vector<double>& vector,
                                                               std::size_t count) {
  std::vector<std::size_t> order(vector.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      const double x = std::abs(vector[a]);
                      const double y = std::abs(vector[b]);
                      return x != y ? x > y : a < b;
                    });
  std::vector<Component> result;
  for (std::size_t i = 0; i < count; ++i) result.push_back({order[i], vector[order[i]]});
  return result;
}

}  // namespace normscope::analysis
