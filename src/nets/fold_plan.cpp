#include "fold_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <normscope/core/exact.hpp>

namespace normscope::nets {
namespace {

/// Distance, relative to half the pair's, below which classes count as coincident.
template <typename T>
constexpr double tie = 1e-22;
template <>
constexpr double tie<double> = 1e-9;
/// Smallest acceptable gap relative to `tie` if nothing better exists; still thousands of roundings. Such
/// gaps occur late, when one cluster per class is near and the last ones are far away.
constexpr double last_resort = 1e-4;

template <typename T>
struct Pair {
  std::size_t first;
  std::size_t second;
  T midpoint;
};

template <typename T>
std::vector<Pair<T>> pairs_by_midpoint(std::span<const T> w, std::span<const std::uint32_t> classes,
                                       std::size_t class_count) {
  const std::size_t front = std::min(w.size(), front_size(class_count));
  std::vector<Pair<T>> pairs;
  for (std::size_t j = 1; j < front; ++j) {
    for (std::size_t i = j; i-- > 0;) {
      if (classes[i] != classes[j]) continue;
      pairs.push_back({i, j, w[i] + (w[j] - w[i]) / T(2.0)});
      break;
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair<T>& a, const Pair<T>& b) { return a.midpoint < b.midpoint; });
  return pairs;
}

/// Smallest distance between a reflected cluster and one of another class.
template <typename T>
T interleaved_gap(std::span<const T> w, std::span<const std::uint32_t> classes, const T& midpoint) {
  std::size_t left = 0;
  while (left < w.size() && w[left] < midpoint) ++left;
  T gap = std::numeric_limits<double>::infinity();
  std::size_t right = left;
  for (std::size_t k = left; k-- > 0;) {
    const T mirrored = midpoint - w[k];
    while (right < w.size() && w[right] - midpoint < mirrored) ++right;
    // Beyond the nearest cluster on each side, a nearer one of another class can only follow one of the same
    // class.
    for (std::size_t n = right; n < w.size() && w[n] - midpoint - mirrored < gap; ++n) {
      if (classes[n] != classes[k]) gap = std::min(gap, w[n] - midpoint - mirrored);
    }
    for (std::size_t n = right; n-- > left && mirrored - (w[n] - midpoint) < gap;) {
      if (classes[n] != classes[k]) gap = std::min(gap, mirrored - (w[n] - midpoint));
    }
  }
  return gap;
}

/// Half the pair's distance; if no cluster lies between the two, up to the distance of the nearest other
/// class, so that a pair much closer than its surroundings does not stretch the line.
template <typename T>
T reach(std::span<const T> w, std::span<const std::uint32_t> classes, const Pair<T>& pair) {
  T reach = w[pair.second] - pair.midpoint;
  if (pair.second != pair.first + 1) return reach;
  T nearest = std::numeric_limits<double>::infinity();
  for (std::size_t k = pair.first; k-- > 0;) {
    if (classes[k] == classes[pair.first]) continue;
    nearest = pair.midpoint - w[k];
    break;
  }
  for (std::size_t k = pair.second + 1; k < w.size(); ++k) {
    if (classes[k] == classes[pair.first]) continue;
    nearest = std::min(nearest, w[k] - pair.midpoint);
    break;
  }
  return std::isfinite(to_double(nearest)) ? std::max(reach, nearest) : reach;
}

}  // namespace

template <typename T>
FoldPlan<T> plan_fold(std::span<const T> w, std::span<const std::uint32_t> classes, std::size_t class_count,
                      double kappa, bool accept_small_gap) {
  FoldPlan<T> best{.gap = last_resort * tie<T>};
  for (const Pair<T>& pair : pairs_by_midpoint(w, classes, class_count)) {
    const T half = w[pair.second] - pair.midpoint;
    if (!(half > T(0.0))) continue;
    const double gap = to_double(interleaved_gap(w, classes, pair.midpoint) / half);
    if (!(gap > best.gap)) continue;
    best = {pair.first, pair.second, pair.midpoint, reach(w, classes, pair) / T(kappa), gap};
    if (gap > tie<T>) return best;
  }
  if (accept_small_gap && best.merges()) return best;
  // Irrational constants break coincidences for all inputs except a null set.
  const T spread = w[std::min<std::size_t>(3, w.size() - 1)] - w[0];
  return {0, 0, w[0] - T(0.37) * spread, T(0.61) * spread, 0.0};
}

template FoldPlan<double> plan_fold(std::span<const double>, std::span<const std::uint32_t>, std::size_t,
                                    double, bool);
template FoldPlan<DoubleDouble> plan_fold(std::span<const DoubleDouble>, std::span<const std::uint32_t>,
                                          std::size_t, double, bool);

}  // namespace normscope::nets
