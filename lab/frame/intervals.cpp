#include "intervals.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <normscope/core/assert.hpp>

namespace normscope::lab {
namespace {

/// P(|T| <= sqrt(freedom) tan(angle)): finite sums for an integer number of degrees of freedom.
double student_within(double angle, std::size_t freedom) {
  const double cosine = std::cos(angle);
  const bool odd = freedom % 2 == 1;
  double term = odd ? cosine : 1.0;
  double sum = freedom == 1 ? 0.0 : term;
  for (std::size_t power = odd ? 3 : 2; power + 2 <= freedom; power += 2) {
    term *= static_cast<double>(power - 1) / static_cast<double>(power) * cosine * cosine;
    sum += term;
  }
  return odd ? 2.0 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
}

/// The argument between `low` and `high` at which the rising `function` is `value`.
template <class Function>
double bisect(double low, double high, double value, const Function& function) {
  constexpr int halvings = 200;
  for (int i = 0; i < halvings; ++i) {
    const double middle = 0.5 * (low + high);
    (function(middle) < value ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

double student_quantile(double confidence, std::size_t freedom) {
  NORMSCOPE_ASSERT(freedom >= 1 && confidence > 0.0 && confidence < 1.0);
  const double angle =
      bisect(0.0, 0.5 * std::numbers::pi, confidence, [&](double at) { return student_within(at, freedom); });
  return std::sqrt(static_cast<double>(freedom)) * std::tan(angle);
}

Interval student_interval(std::span<const double> numbers, double confidence) {
  NORMSCOPE_ASSERT(numbers.size() >= 2);
  const auto count = static_cast<double>(numbers.size());
  double mean = 0.0;
  for (const double number : numbers) mean += number / count;
  double squares = 0.0;
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  const double half =
      student_quantile(confidence, numbers.size() - 1) * std::sqrt(squares / (count - 1.0) / count);
  return {mean - half, mean + half};
}

Interval wilson_interval(std::size_t successes, std::size_t trials, double confidence) {
  NORMSCOPE_ASSERT(trials >= 1 && successes <= trials && confidence > 0.0 && confidence < 1.0);
  const double z =
      bisect(0.0, 40.0, confidence, [](double at) { return std::erf(at / std::numbers::sqrt2); });
  const auto n = static_cast<double>(trials);
  const double share = static_cast<double>(successes) / n;
  const double middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
  const double half = z / (1.0 + z * z / n) * std::sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n));
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

}  // namespace normscope::lab
