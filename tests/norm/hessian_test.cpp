#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/norm/curvature.hpp>
#include <normscope/norm/norm.hpp>

#include "support/dual.hpp"
#include "support/norms.hpp"

namespace normscope::norm {
namespace {

constexpr std::size_t width = 12;

using Product = void (*)(const NormSpec&, MatrixView<const double>, MatrixView<const double>,
                         MatrixView<const double>, MatrixView<double>, unsigned);

std::vector<double> product(Product which, const NormSpec& spec, const std::vector<double>& x,
                            const std::vector<double>& u, const std::vector<double>& v,
                            unsigned threads = 0) {
  std::vector<double> out(x.size());
  const std::size_t rows = x.size() / spec.width;
  which(spec, {x.data(), rows, spec.width}, {u.data(), rows, spec.width}, {v.data(), rows, spec.width},
        {out.data(), rows, spec.width}, threads);
  return out;
}

/// D²y[u, v] by automatic differentiation (second-order dual numbers).
std::vector<double> automatic(const NormSpec& spec, const std::vector<double>& x,
                              const std::vector<double>& u, const std::vector<double>& v) {
  std::vector<test::Dual> duals(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) duals[i] = {.value = x[i], .a = u[i], .b = v[i]};
  std::vector<double> result;
  for (const test::Dual& y : test::normalized(spec, duals)) result.push_back(y.ab);
  return result;
}

std::vector<double> basis(std::size_t i) {
  std::vector<double> e(width);
  e[i] = 1.0;
  return e;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  CompensatedSum sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.add(a[i] * b[i]);
  return sum.value();
}

TEST(Hessian, IsThatOfAutomaticDoubleDerivatives) {
  for (const NormSpec& spec : test::norms_of_every_kind(width)) {
    std::vector<double> x = test::random_values(width, 3);
    // Few enough bits that a shift by 2^40 rounds nothing.
    for (double& value : x) value = std::round(value * 1024.0) / 1024.0;
    const std::vector<double> u = test::random_values(width, 4);
    const std::vector<double> v = test::random_values(width, 5, 0.5);
    const std::vector<double> bent = automatic(spec, x, u, v);
    std::vector<double> pulled;
    for (std::size_t j = 0; j < width; ++j) pulled.push_back(dot(u, automatic(spec, x, basis(j), v)));
    for (const double shift : {0.0, 0x1p40}) {
      if (shift != 0.0 && !spec.centers()) continue;
      for (double& value : x) value += shift;
      const std::vector<double> got_bent = product(second_derivative, spec, x, u, v);
      const std::vector<double> got_pulled = product(hessian_vector, spec, x, u, v);
      for (std::size_t i = 0; i < width; ++i) {
        EXPECT_NEAR(got_bent[i], bent[i], 1e-13 * std::max(1.0, euclidean_norm(bent)))
            << test::describe(spec);
        EXPECT_NEAR(got_pulled[i], pulled[i], 1e-13 * std::max(1.0, euclidean_norm(pulled)))
            << test::describe(spec);
      }
    }
  }
}

TEST(Hessian, IsHowTheJacobianChanges) {
  for (const NormSpec& spec : test::norms_of_every_kind(width)) {
    const std::vector<double> x = test::random_values(width, 5);
    const std::vector<double> w = test::random_values(width, 6);
    const std::vector<double> v = test::random_values(width, 7);
    const double step = 1e-5;
    std::vector<double> change(width);
    for (const double sign : {-1.0, 1.0}) {
      std::vector<double> moved(x), gradient(width);
      for (std::size_t i = 0; i < width; ++i) moved[i] += sign * step * v[i];
      vector_jacobian(spec, {moved.data(), 1, width}, {w.data(), 1, width}, {gradient.data(), 1, width});
      for (std::size_t i = 0; i < width; ++i) change[i] += sign * gradient[i] / (2.0 * step);
    }
    const std::vector<double> got = product(hessian_vector, spec, x, w, v);
    for (std::size_t i = 0; i < width; ++i) {
      EXPECT_NEAR(got[i], change[i], 1e-7 * (1.0 + euclidean_norm(change))) << test::describe(spec);
    }
  }
}

TEST(Hessian, SquaresOfItsEntriesAreTheCurvature) {
  for (const NormSpec& spec : test::norms_of_every_kind(width)) {
    const std::vector<double> x = test::random_values(width, 8);
    CompensatedSum squares;
    CompensatedSum of_outputs;
    for (std::size_t j = 0; j < width; ++j) {
      for (std::size_t k = 0; k < width; ++k) {
        for (const double entry : product(second_derivative, spec, x, basis(j), basis(k))) {
          squares.add(entry * entry);
        }
        for (const double entry : product(hessian_vector, spec, x, basis(j), basis(k))) {
          of_outputs.add(entry * entry);
        }
      }
    }
    const double measure = curvature(spec, {x.data(), 1, width})[0];
    EXPECT_NEAR(squares.value() / measure, 1.0, 1e-11) << test::describe(spec);
    EXPECT_NEAR(of_outputs.value() / measure, 1.0, 1e-11) << test::describe(spec);
  }
}

RC_GTEST_PROP(Hessian, IsOneFormInEveryOrder, (std::uint64_t seed)) {
  Random random(seed);
  const std::vector<NormSpec> specs = test::norms_of_every_kind(width);
  const NormSpec& spec = specs[random.below(specs.size())];
  const std::vector<double> x = test::random_values(width, seed + 1, random.normal());
  const std::vector<double> w = test::random_values(width, seed + 2);
  const std::vector<double> u = test::random_values(width, seed + 3);
  const std::vector<double> v = test::random_values(width, seed + 4);
  const std::vector<double> of_uv = product(second_derivative, spec, x, u, v);
  RC_ASSERT(of_uv == product(second_derivative, spec, x, v, u));
  const std::vector<double> of_wv = product(hessian_vector, spec, x, w, v);
  const std::vector<double> of_wu = product(hessian_vector, spec, x, w, u);
  // Blocks with almost no deviation have unbounded second derivatives, which amplify rounding.
  const double size = euclidean_norm(of_uv) * euclidean_norm(w) + euclidean_norm(of_wv) * euclidean_norm(u) +
                      euclidean_norm(of_wu) * euclidean_norm(v);
  RC_ASSERT(std::abs(dot(w, of_uv) - dot(of_wv, u)) <= 1e-12 * size);
  RC_ASSERT(std::abs(dot(w, of_uv) - dot(of_wu, v)) <= 1e-12 * size);
}

TEST(Hessian, GroupsOfTwoAreFlatAlongEveryLine) {
  const NormSpec spec{.width = width, .groups = 6, .eps = 0.0};
  const std::vector<double> x = test::random_values(width, 9);
  const std::vector<double> v = test::random_values(width, 10);
  for (const double entry : product(second_derivative, spec, x, v, v)) EXPECT_NEAR(entry, 0.0, 1e-12);
}

TEST(Hessian, InPlaceAndOnAnyThreadsGivesTheSame) {
  const NormSpec spec{.width = width, .groups = 3, .gain = test::random_gain(width, "signed", 1)};
  const std::vector<double> x = test::random_values(100 * width, 11);
  const std::vector<double> u = test::random_values(100 * width, 12);
  const std::vector<double> v = test::random_values(100 * width, 13);
  for (const Product which : {&second_derivative, &hessian_vector}) {
    const std::vector<double> apart = product(which, spec, x, u, v, 1);
    EXPECT_EQ(product(which, spec, x, u, v, 3), apart);
    std::vector<double> first(u), second(v);
    which(spec, {x.data(), 100, width}, {first.data(), 100, width}, {v.data(), 100, width},
          {first.data(), 100, width}, 2);
    EXPECT_EQ(first, apart);
    which(spec, {x.data(), 100, width}, {u.data(), 100, width}, {second.data(), 100, width},
          {second.data(), 100, width}, 2);
    EXPECT_EQ(second, apart);
  }
}

TEST(Hessian, ScalesWithTheRowToTheEndsOfTheRange) {
  const std::vector<double> small{1, 2, 4, 9};
  const std::vector<double> v{1, -1, 3, 0.5};
  const NormSpec spec{.kind = NormKind::layer, .width = 4, .eps = 0.0};
  const std::vector<double> expected = product(second_derivative, spec, small, v, v);
  for (const double scale : {0x1p-1070, 0x1p-600, 0x1p600, 0x1p1019}) {
    std::vector<double> x, along;
    for (const double value : small) x.push_back(value * scale);
    for (const double value : v) along.push_back(value * 2.0 * scale);
    const std::vector<double> got = product(second_derivative, spec, x, along, along);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(got[i], 4.0 * expected[i], 1e-14) << scale;
  }
}

TEST(Hessian, IsZeroWhereNothingDeviatesWithoutEps) {
  for (const Product which : {&second_derivative, &hessian_vector}) {
    EXPECT_EQ(product(which, {.width = 3, .eps = 0.0}, {2, 2, 2}, {1, 2, 4}, {4, 5, 9}),
              (std::vector<double>{0, 0, 0}));
    EXPECT_EQ(product(which, {.width = 1, .eps = 0.1}, {2}, {1}, {4}), (std::vector<double>{0}));
    // An odd function has no second derivative at zero.
    for (const double entry : product(which, {.width = 3, .eps = 0.1}, {2, 2, 2}, {1, 2, 4}, {4, 5, 9})) {
      EXPECT_EQ(entry, 0.0);
    }
  }
}

TEST(Hessian, NanStaysInItsBlock) {
  const NormSpec spec{.kind = NormKind::rms, .width = 6, .groups = 3, .eps = 0.0};
  for (const double strange : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    const std::vector<double> got =
        product(hessian_vector, spec, {1, 2, strange, 0, 4, 5}, {1, 2, 3, 4, 5, 6}, {3, 1, 2, 2, 1, 0});
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(std::isnan(got[i]), i == 2 || i == 3) << i;
  }
}

TEST(Hessian, SizesMustFit) {
  const std::vector<double> x(width), v(2 * width);
  std::vector<double> out(width);
  try {
    hessian_vector({.width = width}, {x.data(), 1, width}, {x.data(), 1, width}, {v.data(), 2, width},
                   {out.data(), 1, width});
    FAIL() << "two rows of vectors for one row were taken";
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()), "hessian_vector: the vectors are 2 x 12, expected 1 x 12");
  }
}

}  // namespace
}  // namespace normscope::norm
