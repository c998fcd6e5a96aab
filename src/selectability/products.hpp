#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

namespace normscope::selectability {

/// Keys on each side of a block of products; its scores fit into the second-level cache.
inline constexpr std::size_t block = 256;

/// Number of blocks of `count` rows.
inline std::size_t row_blocks(std::size_t count) { return (count + block - 1) / block; }

/// scores(i, j) = a_iᵀ b_j in float32, row-major, with row stride `columns`.
void multiply(const float* a, std::size_t rows, const float* b, std::size_t columns, std::size_t width,
              float* scores);

/// Number of scores compared at once; the compiler vectorizes loops over them.
inline constexpr std::size_t lanes = 16;
inline constexpr float lowest = -std::numeric_limits<float>::infinity();

/// The largest of the scores `score_at(i)`, i < count.
template <typename ScoreAt>
float largest(std::size_t count, const ScoreAt& score_at) {
  std::array<float, lanes> best;
  best.fill(lowest);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const float score = score_at(i + lane);
      best[lane] = best[lane] < score ? score : best[lane];
    }
  }
  float result = *std::max_element(best.begin(), best.end());
  for (; i < count; ++i) result = std::max(result, score_at(i));
  return result;
}

/// The largest of `count` scores.
inline float largest(const float* scores, std::size_t count) {
  return largest(count, [scores](std::size_t i) { return scores[i]; });
}

/// best[i] = max(best[i], scores[i]).
inline void keep_larger(const float* scores, std::size_t count, float* best) {
  for (std::size_t i = 0; i < count; ++i) best[i] = best[i] < scores[i] ? scores[i] : best[i];
}

/// Calls `visit(i)` for all scores of groups whose largest score is at least `bar()`, and `below(largest)`
/// for each other group. The bar may rise meanwhile.
template <typename Bar, typename Below, typename Visit>
void visit_high(const float* scores, std::size_t count, const Bar& bar, const Below& below,
                const Visit& visit) {
  for (std::size_t begin = 0; begin < count; begin += lanes) {
    const std::size_t size = std::min(lanes, count - begin);
    const float best = largest(scores + begin, size);
    if (best < bar()) {
      below(best);
      continue;
    }
    for (std::size_t i = begin; i < begin + size; ++i) visit(i);
  }
}

}  // namespace normscope::selectability
