#include "twofold.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/numeric/binary_scale.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::certificates {
Total total_of(const std::vector<Weight>& weights, std::size_t excluded) {
  CompensatedSum sum;
  for (const Weight& weight : weights) {
    if (!(weight.weight >= 0.0) || weight.index == excluded) return {};
    sum.add(weight.weight);
  }
  const double total = sum.value();
  if (!(total > 0.0) || !std::isfinite(total)) return {};
  return {true, down(total), up(total)};
}

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

std::vector<Twofold> weighted_difference(std::span<const double> x, MatrixView<const double> rows,
                                         const std::vector<Weight>& weights) {
  std::vector<Twofold> result(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    TwofoldSum sum;
    for (const Weight& weight : weights) {
      sum.add(DoubleDouble::sum(x[i], -rows.row(weight.index)[i]), weight.weight);
    }
    result[i] = sum.result();
  }
  return result;
}

}  // namespace normscope::certificates
