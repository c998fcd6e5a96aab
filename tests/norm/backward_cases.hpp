#pragma once

#include <gtest/gtest.h>

#include "norm/kernel_cases.hpp"

namespace normscope::norm::test {

/// Gradients, and the sizes that their bounds are stated in.
struct ExactGradients {
  std::vector<double> dx, dx_size, gain, gain_size, bias, bias_size;
};

/// The formulas at `normalize_backward` in 106 bits, of rows as stored.
template <typename T>
ExactGradients exact_backward(const Layer<T>& layer, const Rows<T>& x, const Rows<T>& dy) {
  const std::size_t n = layer.width / layer.groups;
  const double divisor = normscope::test::entries_a_square(layer.kind, n);
  ExactGradients result;
  std::vector<DoubleDouble> gain(layer.width), bias(layer.width);
  result.gain_size.resize(layer.width);
  result.bias_size.resize(layer.width);
  for (std::size_t row = 0; row < x.rows; ++row) {
    for (std::size_t begin = 0; begin < layer.width; begin += n) {
      const ExactBlock block(layer, &x.at(row, begin));
      std::vector<DoubleDouble> a(n);
      DoubleDouble mean, along;
      double mean_size = 0.0, along_size = 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        const DoubleDouble slope = number(dy.at(row, begin + i));
        const DoubleDouble y = block.normalized[i];
        a[i] = slope * DoubleDouble(layer.gain_at(begin + i));
        if (layer.centers()) {
          mean += a[i] / DoubleDouble(divisor);
          mean_size += std::abs(a[i].high) / divisor;
        }
        along += a[i] * y / DoubleDouble(divisor);
        along_size += std::abs(a[i].high * y.high) / divisor;
        gain[begin + i] += slope * y;
        bias[begin + i] += slope;
        result.gain_size[begin + i] += std::abs(slope.high) * (1.0 + std::abs(y.high));
        result.bias_size[begin + i] += std::abs(slope.high);
      }
      const bool flat = block.scale.high == 0.0;
      for (std::size_t i = 0; i < n; ++i) {
        const DoubleDouble y = block.normalized[i];
        const double size = std::abs(a[i].high) + mean_size + std::abs(y.high) * along_size;
        result.dx.push_back(
            flat ? 0.0 : std::scalbn(to_double((a[i] - mean - y * along) / block.scale), -block.exponent));
        result.dx_size.push_back(flat ? 0.0 : std::scalbn(size / block.scale.high, -block.exponent));
      }
    }
  }
  for (const DoubleDouble& value : gain) result.gain.push_back(to_double(value));
  for (const DoubleDouble& value : bias) result.bias.push_back(to_double(value));
  return result;
}

/// Gradients that some function made of the rows.
template <typename T>
struct Backward {
  Backward(std::size_t rows, std::size_t width, std::size_t gap = 0, std::size_t offset = 0)
      : dx(rows, width, gap, offset), gain(width), bias(width) {}

  Rows<T> dx;
  std::vector<Wide<T>> gain, bias;
};

/// got is within `bound` of expected, or both lie beyond what T holds.
template <typename T>
bool is_near(double got, double expected, double bound) {
  if (std::isinf(got)) return got * expected > 0.0 && std::abs(expected) + bound >= number(highest<T>());
  return std::abs(got - expected) <= bound;
}

/// Half a unit of T's last place at `value`, if T is narrower than Wide<T>, and T's least number.
template <typename T>
double last_place(double value) {
  return (std::isinf(value) ? 0.0 : half_place<T> * std::abs(value)) + least<T>;
}

/// dx within `dx_units` of u, gradients of gain and bias within `sum_units`, and T's last rounding.
template <typename T>
void expect_bounds(const Backward<T>& got, const ExactGradients& exact, double dx_units, double sum_units) {
  using W = Wide<T>;
  const double u = unit<T>;
  for (std::size_t i = 0; i < exact.dx.size(); ++i) {
    const double value = number(got.dx.at(i / got.dx.width, i % got.dx.width));
    const double bound = dx_units * u * exact.dx_size[i] + last_place<T>(exact.dx[i]);
    ASSERT_TRUE(is_near<T>(value, exact.dx[i], bound))
        << "dx[" << i << "] " << value << " for " << exact.dx[i] << ", "
        << (value - exact.dx[i]) / (u * exact.dx_size[i]) << " u";
  }
  for (std::size_t i = 0; i < got.gain.size(); ++i) {
    ASSERT_TRUE(is_near<W>(static_cast<double>(got.gain[i]), exact.gain[i],
                           sum_units * u * exact.gain_size[i] + least<W>))
        << "gain[" << i << "] " << got.gain[i] << " for " << exact.gain[i];
    ASSERT_TRUE(is_near<W>(static_cast<double>(got.bias[i]), exact.bias[i],
                           sum_units * u * exact.bias_size[i] + least<W>))
        << "bias[" << i << "] " << got.bias[i] << " for " << exact.bias[i];
  }
}

}  // namespace normscope::norm::test
