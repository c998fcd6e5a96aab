#include "fold_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace normscope::lnnet {
namespace {

/// Classes that come closer than this part of half the pair's distance count as together.
constexpr double tie = 1e-9;

struct Pair {
  std::size_t first;
  std::size_t second;
  double midpoint;
};

std::vector<Pair> pairs_by_midpoint(std::span<const double> w, std::span<const std::uint32_t> classes,
                                    std::size_t class_count) {
  const std::size_t front = std::min(w.size(), front_size(class_count));
  std::vector<Pair> pairs;
  for (std::size_t j = 1; j < front; ++j) {
    for (std::size_t i = j; i-- > 0;) {
      if (classes[i] != classes[j]) continue;
      pairs.push_back({i, j, w[i] + (w[j] - w[i]) / 2.0});
      break;
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.midpoint < b.midpoint; });
  return pairs;
}

/// Smallest distance between a reflected cluster and one of another class.
double interleaved_gap(std::span<const double> w, std::span<const std::uint32_t> classes, double midpoint) {
  std::size_t left = 0;
  while (left < w.size() && w[left] < midpoint) ++left;
  double gap = std::numeric_limits<double>::infinity();
  std::size_t right = left;
  for (std::size_t k = left; k-- > 0;) {
    const double mirrored = midpoint - w[k];
    while (right < w.size() && w[right] - midpoint < mirrored) ++right;
    // Beyond the nearest on each side there may be nearer ones of another class only behind one of its own.
    for (std::size_t n = right; n < w.size() && w[n] - midpoint - mirrored < gap; ++n) {
      if (classes[n] != classes[k]) gap = std::min(gap, w[n] - midpoint - mirrored);
    }
    for (std::size_t n = right; n-- > left && mirrored - (w[n] - midpoint) < gap;) {
      if (classes[n] != classes[k]) gap = std::min(gap, mirrored - (w[n] - midpoint));
    }
  }
  return gap;
}

/// Half the pair's distance; where nothing lies between the two, as far as the nearest other class, so that
/// a pair much closer than its surroundings does not stretch the line.
double reach(std::span<const double> w, std::span<const std::uint32_t> classes, const Pair& pair) {
  double reach = w[pair.second] - pair.midpoint;
  if (pair.second != pair.first + 1) return reach;
  double nearest = std::numeric_limits<double>::infinity();
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
  return std::isfinite(nearest) ? std::max(reach, nearest) : reach;
}

}  // namespace

FoldPlan plan_fold(std::span<const double> w, std::span<const std::uint32_t> classes, std::size_t class_count,
                   double kappa) {
  for (const Pair& pair : pairs_by_midpoint(w, classes, class_count)) {
    const double half = w[pair.second] - pair.midpoint;
    if (!(half > 0.0)) continue;
    const double gap = interleaved_gap(w, classes, pair.midpoint) / half;
    if (gap > tie) return {pair.first, pair.second, pair.midpoint, reach(w, classes, pair) / kappa, gap};
  }
  // The numbers are irrational enough to break any coincidence: those that survive are a null set.
  const double spread = w[std::min<std::size_t>(3, w.size() - 1)] - w[0];
  return {0, 0, w[0] - 0.37 * spread, 0.61 * spread, 0.0};
}

}  // namespace normscope::lnnet
