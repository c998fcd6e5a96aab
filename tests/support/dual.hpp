#pragma once

#include <cmath>
#include <vector>

#include <normscope/core/norm_spec.hpp>

#include "support/norms.hpp"

namespace normscope::test {

/// value + a·ε₁ + b·ε₂ + ab·ε₁ε₂ with ε₁² = ε₂² = 0: computing with it carries two directional
/// derivatives and the mixed second one, exact but for rounding.
struct Dual {
  double value = 0.0;
  double a = 0.0;
  double b = 0.0;
  double ab = 0.0;

  friend Dual operator+(const Dual& x, const Dual& y) {
    return {x.value + y.value, x.a + y.a, x.b + y.b, x.ab + y.ab};
  }
  friend Dual operator-(const Dual& x, const Dual& y) {
    return {x.value - y.value, x.a - y.a, x.b - y.b, x.ab - y.ab};
  }
  friend Dual operator*(const Dual& x, const Dual& y) {
    return {x.value * y.value, x.a * y.value + x.value * y.a, x.b * y.value + x.value * y.b,
            x.ab * y.value + x.a * y.b + x.b * y.a + x.value * y.ab};
  }
  /// f(x) where f, f', f'' at x.value are given.
  friend Dual chain(const Dual& x, double f, double first, double second) {
    return {f, first * x.a, first * x.b, first * x.ab + second * x.a * x.b};
  }
  friend Dual inverse_sqrt(const Dual& x) {
    const double f = 1.0 / std::sqrt(x.value);
    return chain(x, f, -0.5 * f / x.value, 0.75 * f / (x.value * x.value));
  }
};

/// The formulas at NormKind, word for word, on numbers that carry derivatives.
inline std::vector<Dual> normalized(const NormSpec& spec, std::vector<Dual> x) {
  const std::size_t block = spec.block_width();
  const Dual share{1.0 / static_cast<double>(block)};
  const Dual divisor{1.0 / entries_a_square(spec.kind, block)};
  for (std::size_t begin = 0; begin < x.size(); begin += block) {
    if (spec.centers()) {
      Dual mean{};
      for (std::size_t i = begin; i < begin + block; ++i) mean = mean + x[i] * share;
      for (std::size_t i = begin; i < begin + block; ++i) x[i] = x[i] - mean;
    }
    Dual square{};
    for (std::size_t i = begin; i < begin + block; ++i) square = square + x[i] * x[i] * divisor;
    const Dual scale = inverse_sqrt(square + Dual{spec.eps});
    for (std::size_t i = begin; i < begin + block; ++i) {
      x[i] = x[i] * scale * Dual{spec.gain_at(i)} + Dual{spec.bias_at(i)};
    }
  }
  return x;
}

}  // namespace normscope::test
