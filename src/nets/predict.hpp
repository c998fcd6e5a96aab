#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/exact.hpp>
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

/// The same followed by LN of three neurons.
template <typename T>
[[nodiscard]] Layer norm_layer(const std::vector<T>& weight, const std::vector<T>& bias) {
  Layer layer = affine_layer(weight, bias);
  layer.activation = Activation::norm;
  layer.norm = {.width = 3, .eps = 0.0};
  return layer;
}

}  // namespace normscope::nets
