#include "twofold.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/numeric/binary_scale.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::certificates {
namespace {

Twofold sum_of(const std::vector<Weight>& weights) {
  TwofoldSum total;
  for (const Weight& weight : weights) total.add(DoubleDouble(weight.weight), 1.0);
  return total.result();
}

/// Entry i of Σ λ (row − origin)/Σλ.
Twofold mean_entry(MatrixView<const double> rows, const std::vector<Weight>& weights,
                   std::span<const double> origin, std::size_t i) {
  TwofoldSum total;
  for (const Weight& weight : weights) {
    total.add(DoubleDouble::sum(rows.row(weight.index)[i], -origin[i]), weight.weight);
  }
  return total.result() / sum_of(weights);
}

}  // namespace

Twofold operator-(const Twofold& a, const Twofold& b) {
  return {a.value - b.value, 2.0 * (a.error + b.error) + 2.0 * fine * (a.size() + b.size())};
}

Twofold operator*(const Twofold& a, const Twofold& b) {
  if (a.is_zero() || b.is_zero()) return {};
  const DoubleDouble value = a.value * b.value;
  return {value,
          2.0 * (a.error * b.size() + b.error * a.size()) + 2.0 * fine * std::abs(value.high) + underflow};
}

Twofold operator/(const Twofold& a, const Twofold& b) {
  const DoubleDouble value = a.value / b.value;
  const double size = std::abs(b.value.high) - 2.0 * b.error;
  if (!(size > 0.0)) return {value, std::numeric_limits<double>::infinity()};
  const double ratio = std::abs(value.high);
  return {value, 2.0 * (a.error + b.error * ratio) / size + 2.0 * fine * ratio};
}

Twofold mean_of(std::span<const Twofold> values) {
  TwofoldSum total;
  for (const Twofold& value : values) total.add(value);
  return total.result() / Twofold{DoubleDouble(static_cast<double>(values.size()))};
}

double length_at_most(std::span<const Twofold> vector) {
  double largest = 0.0;
  std::vector<double> errors;
  for (const Twofold& entry : vector) {
    if (!std::isfinite(entry.size())) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, entry.size());
    errors.push_back(entry.error);
  }
  const BinaryScale scale = BinaryScale::of(largest);
  DoubleDouble square;
  for (const Twofold& entry : vector) {
    const DoubleDouble scaled(scale.divide(entry.value.high), scale.divide(entry.value.low));
    square += scaled * scaled;
  }
  return (scale.multiply(sqrt(square).high) + up(euclidean_norm(errors))) * (1.0 + 4.0 * unit);
}

Twofold dot(std::span<const double> direction, std::span<const double> x, std::span<const double> origin) {
  TwofoldSum total;
  for (std::size_t i = 0; i < x.size(); ++i) total.add(DoubleDouble::sum(x[i], -origin[i]), direction[i]);
  return total.result();
}

double distance_at_most(MatrixView<const double> a, const std::vector<Weight>& weights_a,
                        MatrixView<const double> b, const std::vector<Weight>& weights_b) {
  const std::span<const double> origin = b.row(weights_b.front().index);
  std::vector<Twofold> difference;
  for (std::size_t i = 0; i < a.width(); ++i) {
    difference.push_back(mean_entry(a, weights_a, origin, i) - mean_entry(b, weights_b, origin, i));
  }
  return length_at_most(difference);
}

}  // namespace normscope::certificates
