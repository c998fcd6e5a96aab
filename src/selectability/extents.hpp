#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::selectability {

/// Largest distance of each coordinate of the keys from `center`.
[[nodiscard]] inline std::vector<double> extents_of(MatrixView<const double> keys,
                                                    std::span<const double> center) {
  std::vector<double> result(keys.width());
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    const std::span<const double> key = keys.row(row);
    for (std::size_t i = 0; i < result.size(); ++i) {
      result[i] = std::max(result[i], std::abs(key[i] - center[i]));
    }
  }
  return result;
}

/// Whether distances from the hull of the other keys, one per column, all count as zero.
[[nodiscard]] inline bool are_none(std::span<const double> distances, std::span<const double> extents,
                                   double tolerance) {
  return distances.size() == extents.size() &&
         std::equal(distances.begin(), distances.end(), extents.begin(),
                    [tolerance](double distance, double extent) { return distance <= tolerance * extent; });
}

}  // namespace normscope::selectability
