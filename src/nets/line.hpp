#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <normscope/core/exact.hpp>
#include <normscope/nets/construct.hpp>
#include <normscope/nets/net.hpp>

/// Predicts the outputs of constructed layers in T, double or DoubleDouble. It is written only for layers of
/// constructions and independent of `evaluate`, which checks them; the two agree bit by bit.
namespace normscope::nets {

template <typename T>
inline constexpr Precision precision_of = Precision::double_double;
template <>
inline constexpr Precision precision_of<double> = Precision::float64;

/// √3.
template <typename T>
[[nodiscard]] inline T root_of_three() {
  using std::sqrt;
  return sqrt(T(3.0));
}

/// start + wᵀx, summed in the order of features.
template <typename T>
[[nodiscard]] T affine(std::span<const double> x, std::span<const double> w, T start) {
  for (std::size_t i = 0; i < x.size(); ++i) start = start + T(w[i]) * T(x[i]);
  return start;
}

/// Third entry of LN(h, −h, t). Its mean is t/3, since the first two entries cancel without rounding.
template <typename T>
[[nodiscard]] inline T third_of_norm(const T& h, const T& t) {
  using std::sqrt;
  const T mean = t / T(3.0);
  const T a = h - mean;
  const T b = -h - mean;
  const T d = t - mean;
  return d / sqrt((a * a + b * b + d * d) / T(3.0));
}

inline void append(std::vector<double>& high, std::vector<double>& /*low*/, double value) {
  high.push_back(value);
}
inline void append(std::vector<double>& high, std::vector<double>& low, const DoubleDouble& value) {
  high.push_back(value.high);
  low.push_back(value.low);
}

/// An affine map of those numbers; `weight` (out, in), `bias` (out).
template <typename T>
[[nodiscard]] Layer affine_layer(const std::vector<T>& weight, const std::vector<T>& bias) {
  Layer layer{.in = weight.size() / bias.size(), .out = bias.size()};
  for (const T& value : weight) append(layer.weight, layer.weight_low, value);
  for (const T& value : bias) append(layer.bias, layer.bias_low, value);
  return layer;
}

/// That affine map followed by LN of three neurons.
template <typename T>
[[nodiscard]] Layer norm_layer(const std::vector<T>& weight, const std::vector<T>& bias) {
  Layer layer = affine_layer(weight, bias);
  layer.activation = Activation::norm;
  layer.norm = {.width = 3, .eps = 0.0};
  return layer;
}

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

// The line of clusters in stable mode. Three neurons store q = √2/w in the third of them: with
//   h = (1 − C q, C q − 1, √3 R q)
// the mean is exactly h₃/3 in floating point, so LN gives a third entry with full relative accuracy, however
// small it is, and 1/q' = sqrt(1 + ((1/q − C)/R)²)/√2. With the columns (1, −1, 0)/√2 and (1, 1, −2)/√6 the
// error would be relative to the other two entries.

/// The operation of one layer, in the numbers that the layer is made of.
template <typename T>
struct Crease {
  std::size_t first = no_row;
  std::size_t second = no_row;
  T midpoint = 0.0;
  T radius = 0.0;
  double gap = 0.0;
  std::size_t runs = 0;

  [[nodiscard]] Fold stated() const {
    return {first, second, to_double(midpoint), to_double(radius), gap, runs};
  }
};

template <typename T>
struct Line {
  std::vector<T> q{};                    ///< descending, so 1/q is ascending: the near end comes first
  std::vector<std::uint32_t> classes{};  ///< of each cluster
  std::vector<std::size_t> rows{};       ///< one sample per cluster
  std::vector<Crease<T>> folds{};        ///< folds done, including the first layer's
  std::size_t runs = 0;
};

/// A layer after the first; its output equals `fold_step`, bit by bit.
template <typename T>
[[nodiscard]] Layer fold_layer(const Crease<T>& fold);
/// The first layer: a fold of the projection onto `direction`.
template <typename T>
[[nodiscard]] Layer first_layer(const std::vector<double>& direction, const Crease<T>& fold);
/// The value of a row in the first layer's third neuron.
template <typename T>
[[nodiscard]] T first_step(std::span<const double> row, const std::vector<double>& direction,
                           const Crease<T>& fold);

/// Number of runs of equal classes.
[[nodiscard]] std::size_t count_runs(const std::vector<std::uint32_t>& classes);

/// Parameters for folding a line.
struct FoldRules {
  std::size_t class_count = 0;
  double kappa = 0.0;
  bool early_stop = true;
  unsigned threads = 0;
};

enum class LineState { folding, done, lost };

/// Folds `line` for up to `most` layers. `lost` if rounding no longer separates two classes, or ties cannot
/// be broken.
///
/// Decisions depend only on the front, so many layers are applied to the far clusters at once, in cache and
/// on all threads; their number does not change the bits.
template <typename T>
[[nodiscard]] LineState advance(Line<T>& line, const FoldRules& rules, std::size_t most);

}  // namespace normscope::nets
