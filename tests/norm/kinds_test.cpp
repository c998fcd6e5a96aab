#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/norm/curvature.hpp>
#include <normscope/norm/kernels.hpp>
#include <normscope/norm/norm.hpp>

#include "support/norms.hpp"

/// Every kind of the table, by a formula that does not ask the table.
namespace normscope::norm {
namespace {

constexpr std::size_t width = 6;

/// Entry `i` of the norm of x, without gain and bias.
long double formula(const NormSpec& spec, const std::vector<long double>& x, std::size_t i) {
  const auto n = static_cast<long double>(x.size());
  long double sum = 0.0L;
  long double squares = 0.0L;
  for (const long double value : x) {
    sum += value;
    squares += value * value;
  }
  if (is_elementwise(spec.kind)) {
    return test::ExactActivation(spec.kind).value(spec.alpha * x[i] + spec.shift);
  }
  const long double mean = spec.kind == NormKind::layer ? sum / n : 0.0L;
  const long double divisor = test::entries_a_square(spec.kind, x.size());
  return (x[i] - mean) / std::sqrt((squares - n * mean * mean) / divisor + spec.eps);
}

/// The norm of every kind with the same parameters.
std::vector<NormSpec> one_of_every_kind() {
  std::vector<NormSpec> specs;
  for (const NormKindFacts& row : norm_kinds) {
    specs.push_back({.kind = row.kind, .width = width, .eps = 0.1});
  }
  return specs;
}

const std::vector<double> row = test::random_values(width, 21, 0.4);
const std::vector<double> direction = test::random_values(width, 22, 0.3);

TEST(NormKind, EveryKindIsItsFormula) {
  for (NormSpec spec : one_of_every_kind()) {
    SCOPED_TRACE(to_string(spec.kind));
    if (spec.elementwise()) spec.alpha = 0.8;
    if (facts(spec.kind).has_shift) spec.shift = -0.3;
    std::vector<double> y(width), by_kernel(width), jv(width);
    std::vector<float> narrow(row.begin(), row.end()), single(width);
    forward(spec, {row.data(), 1, width}, {y.data(), 1, width});
    normalize<double>(view(spec), {row.data(), 1, width}, {by_kernel.data(), 1, width});
    Layer<float> layer{.kind = spec.kind, .width = width, .eps = spec.eps};
    layer.alpha = spec.alpha;
    layer.shift = spec.shift;
    normalize<float>(layer, {narrow.data(), 1, width}, {single.data(), 1, width});
    jacobian_vector(spec, {row.data(), 1, width}, {direction.data(), 1, width}, {jv.data(), 1, width});
    const auto moved = [&](long double step, std::size_t i) {
      std::vector<long double> x(row.begin(), row.end());
      for (std::size_t j = 0; j < width; ++j) x[j] += step * static_cast<long double>(direction[j]);
      return formula(spec, x, i);
    };
    for (std::size_t i = 0; i < width; ++i) {
      const auto exact = static_cast<double>(moved(0.0L, i));
      EXPECT_NEAR(y[i], exact, 1e-15 * width);
      EXPECT_NEAR(by_kernel[i], exact, 1e-15 * width);
      EXPECT_NEAR(single[i], exact, 1e-6);
      const long double h = 1e-6L;
      EXPECT_NEAR(jv[i], static_cast<double>((moved(h, i) - moved(-h, i)) / (2.0L * h)), 1e-10);
    }
  }
}

// A kind that computes what another one does is a copied line.
template <typename T>
double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, static_cast<double>(std::abs(a[i] - b[i])));
  }
  return largest;
}

TEST(NormKind, NoTwoKindsAgreeAtAPoint) {
  struct Results {
    std::vector<double> y = std::vector<double>(width);
    std::vector<float> single = std::vector<float>(width);
    std::vector<double> jv = std::vector<double>(width);
    double curvature = 0.0;
  };
  std::vector<Results> all;
  for (const NormSpec& spec : one_of_every_kind()) {
    Results& results = all.emplace_back();
    const std::vector<float> narrow(row.begin(), row.end());
    forward(spec, {row.data(), 1, width}, {results.y.data(), 1, width});
    normalize<float>({.kind = spec.kind, .width = width, .eps = spec.eps}, {narrow.data(), 1, width},
                     {results.single.data(), 1, width});
    jacobian_vector(spec, {row.data(), 1, width}, {direction.data(), 1, width},
                    {results.jv.data(), 1, width});
    results.curvature = curvature(spec, {row.data(), 1, width})[0];
  }
  for (std::size_t a = 0; a < all.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      SCOPED_TRACE(std::string(norm_kinds[a].name) + " and " + std::string(norm_kinds[b].name));
      // Slopes of two kinds are equal somewhere: one feature may be there.
      EXPECT_GT(largest_difference(all[a].y, all[b].y), 1e-2);
      EXPECT_GT(largest_difference(all[a].single, all[b].single), 1e-2);
      EXPECT_GT(largest_difference(all[a].jv, all[b].jv), 1e-2);
      EXPECT_GT(std::abs(all[a].curvature - all[b].curvature), 1e-3);
    }
  }
}

}  // namespace
}  // namespace normscope::norm
