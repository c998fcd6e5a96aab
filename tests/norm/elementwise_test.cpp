#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/norm/curvature.hpp>
#include <normscope/norm/kernels.hpp>
#include <normscope/norm/norm.hpp>

#include "support/norms.hpp"

namespace normscope::norm {
namespace {

constexpr double u = 0x1p-53;

std::vector<NormSpec> elementwise_norms(std::size_t width) {
  std::vector<NormSpec> specs;
  for (const NormKindFacts& row : norm_kinds) {
    if (!is_elementwise(row.kind)) continue;
    specs.push_back({.kind = row.kind, .width = width});
    specs.push_back({.kind = row.kind,
                     .width = width,
                     .gain = test::random_gain(width, "signed", 7),
                     .bias = test::random_values(width, 8),
                     .alpha = 0.7,
                     .shift = row.has_shift ? -0.3 : 0.0});
    specs.push_back({.kind = row.kind, .width = width, .alpha = -40.0, .shift = row.has_shift ? 1e3 : 0.0});
  }
  return specs;
}

long double argument(const NormSpec& spec, double x) {
  return static_cast<long double>(spec.alpha) * x + spec.shift;
}

void expect_near(double got, long double exact, long double tolerance) {
  EXPECT_LE(std::abs(got - exact), tolerance) << "got " << got;
}

/// Rows whose arguments are small, moderate and beyond saturation.
std::vector<double> rows_of_every_size(std::size_t count) {
  std::vector<double> x = test::random_values(count, 5);
  for (std::size_t i = 0; i < count; ++i) x[i] *= std::pow(10.0, static_cast<double>(i % 7) - 4.0);
  return x;
}

TEST(Elementwise, ForwardIsThatOfLongDouble) {
  constexpr std::size_t width = 70;
  const std::vector<double> x = rows_of_every_size(2 * width);
  for (const NormSpec& spec : elementwise_norms(width)) {
    const test::ExactActivation f(spec.kind);
    std::vector<double> y(x.size());
    forward(spec, {x.data(), 2, width}, {y.data(), 2, width});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t at = i % width;
      const long double exact = spec.gain_at(at) * f.value(argument(spec, x[i])) + spec.bias_at(at);
      expect_near(y[i], exact, 4 * u * (std::abs(spec.gain_at(at)) + std::abs(spec.bias_at(at))));
    }
  }
}

TEST(Elementwise, DerivativesAreThoseOfLongDouble) {
  constexpr std::size_t width = 70;
  const std::vector<double> x = rows_of_every_size(width);
  const std::vector<double> a = test::random_values(width, 6);
  const std::vector<double> b = test::random_values(width, 9);
  const MatrixView<const double> rows(x.data(), 1, width);
  for (const NormSpec& spec : elementwise_norms(width)) {
    const test::ExactActivation f(spec.kind);
    std::vector<double> jv(width);
    std::vector<double> wj(width);
    std::vector<double> second(width);
    std::vector<double> hessian(width);
    jacobian_vector(spec, rows, {a.data(), 1, width}, {jv.data(), 1, width});
    vector_jacobian(spec, rows, {a.data(), 1, width}, {wj.data(), 1, width});
    second_derivative(spec, rows, {a.data(), 1, width}, {b.data(), 1, width}, {second.data(), 1, width});
    hessian_vector(spec, rows, {a.data(), 1, width}, {b.data(), 1, width}, {hessian.data(), 1, width});
    long double measure = 0.0L;
    for (std::size_t i = 0; i < width; ++i) {
      const long double t = argument(spec, x[i]);
      const long double slope = spec.gain_at(i) * spec.alpha * f.slope(t);
      const long double bend = spec.gain_at(i) * spec.alpha * spec.alpha * f.curvature(t);
      const double size = std::abs(spec.gain_at(i) * spec.alpha * a[i]);
      measure += bend * bend;
      expect_near(jv[i], slope * a[i], 16 * u * size);
      EXPECT_EQ(jv[i], wj[i]);
      expect_near(second[i], bend * a[i] * b[i], 32 * u * size * std::abs(spec.alpha * b[i]));
      expect_near(hessian[i], bend * a[i] * b[i], 32 * u * size * std::abs(spec.alpha * b[i]));
    }
    expect_near(curvature(spec, rows)[0], measure, 1e-13 * std::max(1.0L, measure));
  }
}

TEST(Elementwise, GradientsAreSumsOverRowsAndDoNotDependOnThreads) {
  constexpr std::size_t width = 9;
  constexpr std::size_t rows = 5000;
  const std::vector<double> x = test::random_values(rows * width, 1);
  const std::vector<double> dy = test::random_values(rows * width, 2);
  for (const NormSpec& spec : elementwise_norms(width)) {
    const test::ExactActivation f(spec.kind);
    std::vector<double> dx(x.size());
    std::vector<double> dgain(width);
    std::vector<double> dbias(width);
    double dalpha = 0.0;
    double dshift = 0.0;
    const auto run = [&](unsigned threads) {
      normalize_backward<double>(view(spec), {x.data(), rows, width}, {dy.data(), rows, width},
                                 {dx.data(), rows, width}, {dgain, dbias, &dalpha, &dshift}, threads);
    };
    run(1);
    std::vector<long double> exact_gain(width);
    long double exact_alpha = 0.0L;
    long double exact_shift = 0.0L;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double t = argument(spec, x[i]);
      const long double inner = dy[i] * spec.gain_at(i % width) * f.slope(t);
      exact_gain[i % width] += dy[i] * f.value(t);
      exact_alpha += inner * x[i];
      exact_shift += inner;
      expect_near(dx[i], spec.alpha * inner, 16 * u * std::abs(spec.alpha * spec.gain_at(i % width) * dy[i]));
    }
    const double largest = 8 * u * static_cast<double>(rows);
    for (std::size_t i = 0; i < width; ++i) expect_near(dgain[i], exact_gain[i], largest);
    expect_near(dalpha, exact_alpha, 4 * width * largest);
    expect_near(dshift, exact_shift, 4 * width * largest);
    const std::vector<double> gain_once = dgain;
    const double alpha_once = dalpha;
    run(3);
    EXPECT_EQ(dgain, gain_once);
    EXPECT_EQ(dalpha, alpha_once);
  }
}

TEST(Elementwise, EveryElementTypeIsRoundedOnce) {
  const NormSpec spec{.kind = NormKind::dyt, .width = 4, .alpha = 0.5};
  const std::vector<float> x = {0.1F, -3.0F, 100.0F, 0.0F};
  std::vector<float> y(4);
  normalize<float>({.kind = spec.kind, .width = 4, .alpha = 0.5}, {x.data(), 1, 4}, {y.data(), 1, 4});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(y[i], static_cast<float>(std::tanh(0.5 * x[i])));
  std::vector<Bfloat16> half(4);
  std::vector<Bfloat16> out(4);
  for (std::size_t i = 0; i < 4; ++i) half[i] = to_bfloat16(x[i]);
  normalize<Bfloat16>({.kind = spec.kind, .width = 4, .alpha = 0.5}, {half.data(), 1, 4}, {out.data(), 1, 4});
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(to_float(out[i]),
              to_float(to_bfloat16(static_cast<float>(std::tanh(0.5 * to_float(half[i]))))));
  }
}

TEST(Elementwise, AddNormalizeIsAnAdditionAndANorm) {
  constexpr std::size_t width = 5;
  constexpr std::size_t rows = 4000;
  const std::vector<double> x = test::random_values(rows * width, 3);
  const std::vector<double> residual = test::random_values(rows * width, 4);
  const Layer<double> layer{.kind = NormKind::derf, .width = width, .alpha = 0.5, .shift = 0.25};
  std::vector<double> expected_sum(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) expected_sum[i] = x[i] + residual[i];
  std::vector<double> expected(x.size());
  normalize<double>(layer, {expected_sum.data(), rows, width}, {expected.data(), rows, width});
  // Over the arguments themselves.
  std::vector<double> sum = residual;
  std::vector<double> y = x;
  add_normalize<double>(layer, {y.data(), rows, width}, {sum.data(), rows, width}, {sum.data(), rows, width},
                        {y.data(), rows, width});
  EXPECT_EQ(sum, expected_sum);
  EXPECT_EQ(y, expected);
}

TEST(Elementwise, EndsOfTheRangeAreThoseOfTheFunction) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> x = {infinity, -infinity, 1e308, std::nan("")};
  for (NormSpec spec : normscope::test::elementwise_norms(4, 3.0, 0.0)) {
    spec.gain = {2, 2, 2, 2};
    std::vector<double> y(4);
    std::vector<double> dx(4);
    forward(spec, {x.data(), 1, 4}, {y.data(), 1, 4});
    EXPECT_EQ(y[0], 2.0);
    EXPECT_EQ(y[1], -2.0);
    EXPECT_EQ(y[2], 2.0);
    EXPECT_TRUE(std::isnan(y[3]));
    jacobian_vector(spec, {x.data(), 1, 4}, {spec.gain.data(), 1, 4}, {dx.data(), 1, 4});
    EXPECT_EQ(dx[0], 0.0);
    EXPECT_EQ(dx[2], 0.0);
    EXPECT_TRUE(std::isnan(dx[3]));
  }
}

TEST(Elementwise, GroupsAndForeignGradientsAreRefused) {
  EXPECT_THROW(validate(NormSpec{.kind = NormKind::dyt, .width = 4, .groups = 2}), Error);
  EXPECT_THROW(validate(NormSpec{.kind = NormKind::dyt, .width = 4, .alpha = std::nan("")}), Error);
  EXPECT_THROW(validate(NormSpec{.kind = NormKind::dyt, .width = 4, .shift = 0.5}), Error);
  EXPECT_THROW(validate(NormSpec{.kind = NormKind::layer, .width = 4, .alpha = 0.5}), Error);
  EXPECT_THROW(validate(NormSpec{.kind = NormKind::rms, .width = 4, .shift = 0.5}), Error);
  const std::vector<double> x(4);
  std::vector<double> dx(4);
  double dalpha = 0.0;
  EXPECT_THROW(normalize_backward<double>({.width = 4}, {x.data(), 1, 4}, {x.data(), 1, 4}, {dx.data(), 1, 4},
                                          {.alpha = &dalpha}),
               Error);
}

}  // namespace
}  // namespace normscope::norm
