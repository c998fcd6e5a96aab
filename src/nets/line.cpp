#include "line.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>

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

/// Number of clusters whose folds are decided before the others follow.
constexpr std::size_t window_size = 768;
constexpr std::size_t window_layers = 256;
/// Consecutive monotone layers after which another has no effect, and after which a tie is unbreakable.
constexpr std::size_t enough_breaks = 2;
constexpr std::size_t most_breaks = 8;

/// The third entry of LN of (1 − C q, C q − 1, √3 R q).
template <typename T>
void fold_step(const Crease<T>& fold, T* q, std::size_t count) {
  const T c = -fold.midpoint;
  const T scale = root_of_three<T>() * fold.radius;
  for (std::size_t k = 0; k < count; ++k) q[k] = third_of_norm(T(1.0) + c * q[k], scale * q[k]);
}

/// The front clusters of a line, whose order determines the next folds.
template <typename T>
class Window {
 public:
  Window(Line<T>& line, const FoldRules& rules, std::size_t size)
      : line_(line),
        rules_(rules),
        whole_(size >= line.q.size()),
        end_(std::min(size, line.q.size())),
        w_(end_) {}

  /// Whether the next fold can be decided without clusters beyond the window.
  [[nodiscard]] bool suffices() const {
    return whole_ || end_ - begin_ >= 2 * front_size(rules_.class_count);
  }
  [[nodiscard]] bool done() const {
    return line_.runs <= rules_.class_count &&
           (rules_.early_stop || line_.q.size() - begin_ <= rules_.class_count);
  }
  [[nodiscard]] std::size_t begin() const { return begin_; }
  [[nodiscard]] std::size_t end() const { return end_; }

  enum class Outcome { merged, moved, too_small };
  /// Folds once; `accept_small_gap` as in `plan_fold`.
  Outcome fold(bool accept_small_gap) {
    const std::size_t count = end_ - begin_;
    for (std::size_t k = 0; k < count; ++k) w_[k] = T(1.0) / line_.q[begin_ + k];
    const std::span<const T> w(w_.data(), count);
    const std::span<const std::uint32_t> classes(line_.classes.data() + begin_, count);
    const FoldPlan<T> plan = plan_fold<T>(w, classes, rules_.class_count, rules_.kappa, accept_small_gap);
    const bool reflects = plan.midpoint > w[0];
    if (!whole_ && reflects && !(w[count - 1] - plan.midpoint > T(2.0) * (plan.midpoint - w[0]))) {
      return Outcome::too_small;
    }
    Crease<T> fold{.midpoint = plan.midpoint, .radius = plan.radius, .gap = plan.gap};
    if (plan.merges()) {
      fold.first = line_.rows[begin_ + plan.first];
      fold.second = line_.rows[begin_ + plan.second];
    }
    fold_step(fold, line_.q.data() + begin_, count);
    if (plan.merges()) interleave(w, plan);
    fold.runs = line_.runs;
    line_.folds.push_back(fold);
    return plan.merges() ? Outcome::merged : Outcome::moved;
  }

 private:
  /// Clusters left of the midpoint are reversed and merged among those right of it; the near one of the pair
  /// is removed.
  void interleave(std::span<const T> w, const FoldPlan<T>& plan) {
    std::size_t left = 0;
    while (w[left] < plan.midpoint) ++left;
    const std::size_t before = runs_of(begin_, end_);
    struct Cluster {
      T q;
      std::uint32_t label;
      std::size_t row;
    };
    const auto at = [&](std::size_t k) {
      return Cluster{line_.q[begin_ + k], line_.classes[begin_ + k], line_.rows[begin_ + k]};
    };
    std::vector<Cluster> merged;
    std::size_t right = left;
    const std::size_t count = end_ - begin_;
    for (std::size_t k = left; k-- > 0;) {
      if (k == plan.first) continue;
      const Cluster reflected = at(k);
      while (right < count && line_.q[begin_ + right] > reflected.q) merged.push_back(at(right++));
      merged.push_back(reflected);
    }
    begin_ += right - merged.size();
    for (std::size_t k = 0; k < merged.size(); ++k) {
      line_.q[begin_ + k] = merged[k].q;
      line_.classes[begin_ + k] = merged[k].label;
      line_.rows[begin_ + k] = merged[k].row;
    }
    line_.runs -= before - runs_of(begin_, end_);
  }

  [[nodiscard]] std::size_t runs_of(std::size_t begin, std::size_t end) const {
    std::size_t runs = 1;
    for (std::size_t k = begin + 1; k < end; ++k) runs += line_.classes[k] != line_.classes[k - 1] ? 1 : 0;
    return runs;
  }

  Line<T>& line_;
  const FoldRules& rules_;
  bool whole_;
  std::size_t begin_ = 0;
  std::size_t end_;
  std::vector<T> w_;
};

template <typename T>
void follow(Line<T>& line, std::size_t begin, std::size_t first_fold, unsigned threads) {
  parallel_for(line.q.size() - begin, 512, threads, [&](std::size_t from, std::size_t to) {
    constexpr std::size_t piece = 512;  // fits into the first-level cache for all folds
    for (std::size_t k = from; k < to; k += piece) {
      for (std::size_t f = first_fold; f < line.folds.size(); ++f) {
        fold_step(line.folds[f], line.q.data() + begin + k, std::min(piece, to - k));
      }
    }
  });
}

template <typename T>
void drop_front(Line<T>& line, std::size_t count) {
  const auto by = static_cast<std::ptrdiff_t>(count);
  line.q.erase(line.q.begin(), line.q.begin() + by);
  line.classes.erase(line.classes.begin(), line.classes.begin() + by);
  line.rows.erase(line.rows.begin(), line.rows.begin() + by);
}

template <typename T>
bool is_ordered(const Line<T>& line) {
  for (std::size_t k = 1; k < line.q.size(); ++k) {
    if (line.classes[k] == line.classes[k - 1] ? line.q[k] > line.q[k - 1] : !(line.q[k] < line.q[k - 1])) {
      return false;
    }
  }
  return true;
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

template <typename T>
Layer fold_layer(const Crease<T>& fold) {
  const T c = fold.midpoint;
  const T scale = root_of_three<T>() * fold.radius;
  return norm_layer<T>({0.0, 0.0, -c, 0.0, 0.0, c, 0.0, 0.0, scale}, {1.0, -1.0, 0.0});
}

template <typename T>
Layer first_layer(const std::vector<double>& direction, const Crease<T>& fold) {
  std::vector<T> weight(direction.begin(), direction.end());
  for (const double value : direction) weight.push_back(-value);
  weight.resize(3 * direction.size(), 0.0);
  return norm_layer<T>(weight, {-fold.midpoint, fold.midpoint, root_of_three<T>() * fold.radius});
}

template <typename T>
T first_step(std::span<const double> row, const std::vector<double>& direction, const Crease<T>& fold) {
  return third_of_norm(affine(row, direction, -fold.midpoint), root_of_three<T>() * fold.radius);
}

std::size_t count_runs(const std::vector<std::uint32_t>& classes) {
  std::size_t runs = classes.empty() ? 0 : 1;
  for (std::size_t k = 1; k < classes.size(); ++k) runs += classes[k] != classes[k - 1] ? 1 : 0;
  return runs;
}

template <typename T>
LineState advance(Line<T>& line, const FoldRules& rules, std::size_t most) {
  std::size_t size = std::max(window_size, 4 * front_size(rules.class_count));
  const std::size_t last = line.folds.size() + most;
  std::size_t breaks = 0;
  while (line.folds.size() < last) {
    const std::size_t first_fold = line.folds.size();
    Window<T> window(line, rules, size);
    bool too_small = false;
    while (!window.done() && window.suffices() &&
           line.folds.size() < std::min(last, first_fold + window_layers)) {
      const typename Window<T>::Outcome outcome = window.fold(breaks >= enough_breaks);
      too_small = outcome == Window<T>::Outcome::too_small;
      if (too_small) break;
      breaks = outcome == Window<T>::Outcome::moved ? breaks + 1 : 0;
      if (breaks > most_breaks) return LineState::lost;
    }
    const bool done = window.done();
    follow(line, window.end(), first_fold, rules.threads);
    drop_front(line, window.begin());
    if (!is_ordered(line)) return LineState::lost;
    if (done) return LineState::done;
    if (too_small) size *= 2;
  }
  return LineState::folding;
}

template Layer fold_layer(const Crease<double>&);
template Layer fold_layer(const Crease<DoubleDouble>&);
template Layer first_layer(const std::vector<double>&, const Crease<double>&);
template Layer first_layer(const std::vector<double>&, const Crease<DoubleDouble>&);
template double first_step(std::span<const double>, const std::vector<double>&, const Crease<double>&);
template DoubleDouble first_step(std::span<const double>, const std::vector<double>&,
                                 const Crease<DoubleDouble>&);
template LineState advance(Line<double>&, const FoldRules&, std::size_t);
template LineState advance(Line<DoubleDouble>&, const FoldRules&, std::size_t);

}  // namespace normscope::nets
