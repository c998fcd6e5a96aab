#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace normscope::nets {

/// The exponential means of a gradient g and of its square, which every Adam keeps:
///   m ← β₁m + (1 − β₁)g, v ← β₂v + (1 − β₂)g²
///
/// Source    [Kingma, Ba 2015, algorithm 1]
template <typename Real>
void update_moments(Real gradient, Real beta1, Real beta2, Real& first, Real& second) {
  first = beta1 * first + (Real(1) - beta1) * gradient;
  second = beta2 * second + (Real(1) - beta2) * gradient * gradient;
}

/// The optimizer Adam with gradients clipped to length c, with the same rounding on every machine:
///   g ← g min(1, c/|g|), m ← β₁m + (1 − β₁)g, v ← β₂v + (1 − β₂)g²
///   w ← w − rate m / (1 − β₁ᵗ) / (sqrt(v / (1 − β₂ᵗ)) + ε), β₁ = 0.9, β₂ = 0.999, ε = 1e-8
///
/// Source    [Kingma, Ba 2015, algorithm 1]
///
/// Accuracy  same bits natively and in the browser (test: Train.GivesTheSameBitsEverywhere)
struct Adam {
  static constexpr double beta1 = 0.9;
  static constexpr double beta2 = 0.999;
  static constexpr double eps = 1e-8;

  explicit Adam(std::size_t parameters) : first(parameters), second(parameters) {}

  /// Makes one step on the parameters; `parameter(i)` returns a reference to the i-th. A gradient that is not
  /// finite, as in a diverging training, changes nothing.
  ///
  /// Shapes    gradient (parameters)
  template <typename Real, typename Parameter>
  void step(double rate, double clip, std::span<const Real> gradient, const Parameter& parameter) {
    double squares = 0.0;
    for (const Real value : gradient) squares += static_cast<double>(value) * value;
    const double norm = std::sqrt(squares);
    if (!std::isfinite(norm)) return;
    const double scale = norm > clip ? clip / norm : 1.0;
    power1 *= beta1;
    power2 *= beta2;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double slope = scale * gradient[i];
      update_moments(slope, beta1, beta2, first[i], second[i]);
      const double move = first[i] / (1.0 - power1) / (std::sqrt(second[i] / (1.0 - power2)) + eps);
      Real& value = parameter(i);
      value = static_cast<Real>(value - rate * move);
    }
  }

  std::vector<double> first;   ///< m
  std::vector<double> second;  ///< v
  double power1 = 1.0;         ///< β₁ᵗ after t steps
  double power2 = 1.0;         ///< β₂ᵗ
};

}  // namespace normscope::nets
