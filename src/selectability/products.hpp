#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

namespace normscope::selectability {

/// Keys on each side of a block of products; its scores fit into the second-level cache.
inline constexpr std::size_t block = 256;

/// scores(i, j) = a_iᵀ b_j in float32, row-major, with row stride `columns`.
void multiply(const float* a, std::size_t rows, const float* b, std::size_t columns, std::size_t width,
              float* scores);

/// Number of scores compared at once; the compiler vectorizes loops over them.
inline constexpr std::size_t lanes = 16;
inline constexpr float lowest = -std::numeric_limits<float>::infinity();

/// The largest of `count` scores.
inline float largest(const float* scores, std::size_t count) {
  std::array<float, lanes> best;
  best.fill(lowest);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      best[lane] = best[lane] < scores[i + lane] ? scores[i + lane] : best[lane];
    }
  }
  float result = *std::max_element(best.begin(), best.end());
  for (; i < count; ++i) result = std::max(result, scores[i]);
  return result;
}

/// best[i] = max(best[i], scores[i]).
inline void keep_larger(const float* scores, std::size_t count, float* best) {
  for (std::size_t i = 0; i < count; ++i) best[i] = best[i] < scores[i] ? scores[i] : best[i];
}

}  // namespace normscope::selectability
