#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace normscope::nets {

/// A fold w' = sqrt(1 + ((w − midpoint)/radius)²) of clusters at ascending w.
template <typename T>
struct FoldPlan {
  std::size_t first = 0;  ///< the merged pair; equal for a layer that merges nothing
  std::size_t second = 0;
  T midpoint = 0.0;
  T radius = 0.0;
  double gap = 0.0;

  [[nodiscard]] bool merges() const { return first != second; }
};

/// The fold with the smallest midpoint that merges two neighbours of one class among the front clusters and
/// brings no two classes together; a monotone layer if there is none. If such layers had no effect
/// (`accept_small_gap`), the fold that keeps classes farthest apart is used.
///
/// Requires  w ascending, at least two of one class among the first classes + 1
template <typename T>
[[nodiscard]] FoldPlan<T> plan_fold(std::span<const T> w, std::span<const std::uint32_t> classes,
                                    std::size_t class_count, double kappa, bool accept_small_gap = false);

/// Number of clusters at the front in which `plan_fold` searches for pairs.
[[nodiscard]] inline std::size_t front_size(std::size_t class_count) { return 4 * class_count + 4; }

}  // namespace normscope::nets
