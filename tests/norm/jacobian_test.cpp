#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/norm/norm.hpp>

#include "support/dual.hpp"
#include "support/norms.hpp"

namespace normscope::norm {
namespace {

constexpr std::size_t width = 12;

using Product = void (*)(const NormSpec&, MatrixView<const double>, MatrixView<const double>,
                         MatrixView<double>, unsigned);

std::vector<double> product(Product which, const NormSpec& spec, const std::vector<double>& x,
                            const std::vector<double>& v, unsigned threads = 0) {
  std::vector<double> out(x.size());
  const std::size_t rows = x.size() / spec.width;
  which(spec, {x.data(), rows, spec.width}, {v.data(), rows, spec.width}, {out.data(), rows, spec.width},
        threads);
  return out;
}

/// J v by automatic differentiation (dual numbers).
std::vector<double> automatic(const NormSpec& spec, const std::vector<double>& x,
                              const std::vector<double>& v) {
  std::vector<test::Dual> duals(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) duals[i] = {.value = x[i], .a = v[i]};
  std::vector<double> result;
  for (const test::Dual& y : test::normalized(spec, duals)) result.push_back(y.a);
  return result;
}

TEST(Jacobian, IsThatOfAutomaticDifferentiation) {
  for (const NormSpec& spec : test::norms_of_every_kind(width)) {
    std::vector<double> x = test::random_values(width, 3);
    // Few enough bits that a shift by 2^40 rounds nothing.
    for (double& value : x) value = std::round(value * 1024.0) / 1024.0;
    const std::vector<double> v = test::random_values(width, 4);
    const std::vector<double> expected = automatic(spec, x, v);
    const double tolerance = 1e-13 * std::max(1.0, euclidean_norm(expected));
    for (const double shift : {0.0, 0x1p40}) {
      if (shift != 0.0 && !spec.centers()) continue;
      for (double& value : x) value += shift;
      const std::vector<double> got = product(jacobian_vector, spec, x, v);
      for (std::size_t i = 0; i < width; ++i)
        EXPECT_NEAR(got[i], expected[i], tolerance) << test::describe(spec);
    }
  }
}

TEST(Jacobian, IsThatOfCentralDifferences) {
  for (const NormSpec& spec : test::norms_of_every_kind(width)) {
    const std::vector<double> x = test::random_values(width, 5);
    const std::vector<double> v = test::random_values(width, 6);
    const double step = 1e-5;
    std::vector<double> ahead(x), behind(x);
    for (std::size_t i = 0; i < width; ++i) {
      ahead[i] += step * v[i];
      behind[i] -= step * v[i];
    }
    forward(spec, {ahead.data(), 1, width}, {ahead.data(), 1, width});
    forward(spec, {behind.data(), 1, width}, {behind.data(), 1, width});
    const std::vector<double> got = product(jacobian_vector, spec, x, v);
    for (std::size_t i = 0; i < width; ++i) {
      EXPECT_NEAR(got[i], (ahead[i] - behind[i]) / (2.0 * step), 2e-7) << test::describe(spec);
    }
  }
}

TEST(Jacobian, TransposeIsTheAdjoint) {
  for (const NormSpec& spec : test::norms_of_every_kind(width)) {
    const std::vector<double> x = test::random_values(width, 7, 0.5);
    const std::vector<double> v = test::random_values(width, 8);
    const std::vector<double> w = test::random_values(width, 9);
    const std::vector<double> forwards = product(jacobian_vector, spec, x, v);
    const std::vector<double> backwards = product(vector_jacobian, spec, x, w);
    double left = 0.0, right = 0.0;
    for (std::size_t i = 0; i < width; ++i) {
      left += w[i] * forwards[i];
      right += backwards[i] * v[i];
    }
    EXPECT_NEAR(left, right, 1e-12 * (1.0 + std::abs(left))) << test::describe(spec);
  }
}

TEST(Jacobian, DoesNotSeeTheBiasOrTheThreads) {
  const std::vector<double> x = test::random_values(100 * width, 10);
  const std::vector<double> v = test::random_values(100 * width, 11);
  NormSpec spec{.width = width, .groups = 3, .gain = test::random_gain(width, "signed", 1)};
  const std::vector<double> plain = product(jacobian_vector, spec, x, v, 1);
  spec.bias = test::random_values(width, 12);
  EXPECT_EQ(product(jacobian_vector, spec, x, v, 3), plain);
}

TEST(Jacobian, InPlaceGivesTheSame) {
  const NormSpec spec{.width = width, .groups = 2, .gain = test::random_gain(width, "signed", 1)};
  const std::vector<double> x = test::random_values(width, 13);
  std::vector<double> v = test::random_values(width, 14);
  const std::vector<double> apart = product(vector_jacobian, spec, x, v);
  vector_jacobian(spec, {x.data(), 1, width}, {v.data(), 1, width}, {v.data(), 1, width});
  EXPECT_EQ(v, apart);
}

TEST(Jacobian, IsZeroWhereNothingDeviatesWithoutEps) {
  const NormSpec spec{.width = 3, .eps = 0.0};
  EXPECT_EQ(product(jacobian_vector, spec, {2, 2, 2}, {1, 2, 4}), (std::vector<double>{0, 0, 0}));
}

TEST(Jacobian, SizesMustFit) {
  const std::vector<double> x(8);
  std::vector<double> out(8);
  EXPECT_THROW(jacobian_vector({.width = 4}, {x.data(), 2, 4}, {x.data(), 1, 4}, {out.data(), 2, 4}), Error);
  EXPECT_THROW(vector_jacobian({.width = 4}, {x.data(), 2, 4}, {x.data(), 2, 4}, {out.data(), 1, 4}), Error);
}

}  // namespace
}  // namespace normscope::norm
