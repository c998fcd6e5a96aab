#include <cmath>
#include <limits>
#include <ostream>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/norm/kernels.hpp>
#include <normscope/norm/norm.hpp>

#include "norm/backward_cases.hpp"
#include "support/norms.hpp"

namespace normscope::norm {
namespace {

std::vector<double> normalized(const NormSpec& spec, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  forward(spec, {x.data(), x.size() / spec.width, spec.width}, {y.data(), x.size() / spec.width, spec.width});
  return y;
}

/// The formulas at NormKind, word for word, in extended precision.
std::vector<long double> exact(const NormSpec& spec, const std::vector<double>& x) {
  std::vector<long double> y(x.begin(), x.end());
  const std::size_t block = spec.block_width();
  for (std::size_t begin = 0; begin < x.size(); begin += block) {
    long double center = 0.0L;
    for (std::size_t i = begin; i < begin + block; ++i) center += y[i] / static_cast<long double>(block);
    long double square = 0.0L;
    for (std::size_t i = begin; i < begin + block; ++i) {
      if (spec.centers()) y[i] -= center;
      square += y[i] * y[i];
    }
    const long double divisor = normscope::test::entries_a_square(spec.kind, block);
    const long double scale = std::sqrt(square / divisor + static_cast<long double>(spec.eps));
    for (std::size_t i = begin; i < begin + block; ++i) {
      const std::size_t feature = i % spec.width;
      y[i] = y[i] / scale * spec.gain_at(feature) + spec.bias_at(feature);
    }
  }
  return y;
}

struct Case {
  const char* name;
  NormKind kind;
  std::size_t width;
  std::size_t groups;
  double eps;
  double mean;
  double spread;
};

/// Also the name of the test.
void PrintTo(const Case& given, std::ostream* out) { *out << given.name; }

class NormCases : public testing::TestWithParam<Case> {};

TEST_P(NormCases, MatchesExtendedPrecision) {
  const Case& c = GetParam();
  Random random(11);
  NormSpec spec{.kind = c.kind, .width = c.width, .groups = c.groups, .eps = c.eps};
  for (std::size_t i = 0; i < c.width; ++i) {
    spec.gain.push_back(random.normal());
    spec.bias.push_back(0.1 * random.normal());
  }
  std::vector<double> x(5 * c.width);
  for (double& value : x) value = c.mean + c.spread * random.normal();
  const std::vector<double> y = normalized(spec, x);
  const std::vector<long double> expected = exact(spec, x);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double bias = spec.bias_at(i % c.width);
    const double core =
        std::abs(static_cast<double>(expected[i]) - bias) + std::abs(spec.gain_at(i % c.width));
    EXPECT_NEAR(y[i], static_cast<double>(expected[i]), 4 * 0x1p-53 * (core + std::abs(bias))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, NormCases,
                         testing::Values(Case{"layer", NormKind::layer, 768, 1, 1e-5, 0.0, 1.0},
                                         Case{"layer_without_eps", NormKind::layer, 33, 1, 0.0, 1.0, 1.0},
                                         Case{"layer_far_mean", NormKind::layer, 512, 1, 1e-5, 1e3, 1.0},
                                         Case{"layer_tiny", NormKind::layer, 64, 1, 1e-12, 0.0, 1e-9},
                                         Case{"grouped", NormKind::layer, 96, 8, 1e-5, 2.0, 1.0},
                                         Case{"rms", NormKind::rms, 768, 1, 1e-6, 0.3, 1.0},
                                         Case{"grouped_rms", NormKind::rms, 64, 4, 1e-6, 0.3, 1.0},
                                         Case{"spherical", NormKind::spherical, 3, 1, 1e-5, 0.0, 1.0},
                                         Case{"width_two", NormKind::layer, 2, 1, 1e-5, 0.0, 1.0}),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(Norm, SurvivesSquaresThatOverflow) {
  const NormSpec spec{.kind = NormKind::layer, .width = 4, .eps = 1e-5};
  const std::vector<double> y = normalized(spec, {1e200, -1e200, 1e200, -1e200});
  EXPECT_NEAR(y[0], 1.0, 1e-15);
  EXPECT_NEAR(y[1], -1.0, 1e-15);
}

TEST(Norm, ConstantRowGivesTheBiasEvenWithoutEps) {
  const NormSpec spec{.kind = NormKind::layer, .width = 3, .eps = 0.0, .gain = {2, 2, 2}, .bias = {1, 2, 3}};
  EXPECT_EQ(normalized(spec, {7.0, 7.0, 7.0}), (std::vector<double>{1, 2, 3}));
}

TEST(Norm, NotANumberStaysInItsBlock) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const NormSpec spec{.kind = NormKind::layer, .width = 4, .groups = 2, .eps = 1e-5};
  const std::vector<double> y = normalized(spec, {nan, 1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 3.0});
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  for (std::size_t i = 2; i < 8; ++i) EXPECT_TRUE(std::isfinite(y[i])) << i;
}

TEST(Norm, WidthOneIsTheBias) {
  const NormSpec spec{.kind = NormKind::layer, .width = 1, .eps = 1e-5, .gain = {5}, .bias = {0.25}};
  EXPECT_EQ(normalized(spec, {3.0}), (std::vector<double>{0.25}));
}

TEST(Norm, InPlaceGivesTheSame) {
  const NormSpec spec{.kind = NormKind::rms, .width = 3, .eps = 1e-6, .gain = {1, 2, 3}};
  std::vector<double> x{0.5, -1.0, 2.0};
  const std::vector<double> apart = normalized(spec, x);
  forward(spec, {x.data(), 1, 3}, {x.data(), 1, 3});
  EXPECT_EQ(x, apart);
}

TEST(Norm, BackwardMeetsItsBound) {
  for (const NormSpec& kind : normscope::test::norms_of_every_kind(24)) {
    const Layer<double> layer{
        .kind = kind.kind, .width = 24, .groups = kind.groups, .eps = kind.eps, .gain = kind.gain};
    std::vector<test::Rows<double>> batches{test::random_rows<double>(300, 24, 1)};
    for (const test::HardRow& hard : test::hard_rows<double>(24)) {
      batches.emplace_back(1, 24);
      batches.back().set(0, hard.entries);
    }
    for (std::size_t batch = 0; batch < batches.size(); ++batch) {
      SCOPED_TRACE(testing::Message() << normscope::test::describe(kind) << " batch " << batch);
      const test::Rows<double>& x = batches[batch];
      const test::Rows<double> dy = test::random_rows<double>(x.rows, 24, 2);
      test::Backward<double> got(x.rows, 24);
      backward(kind, x.view(), dy.view(), got.dx.view(), got.gain, got.bias);
      test::expect_bounds(got, test::exact_backward(layer, x, dy), 16.0, 12.0);
    }
  }
}

TEST(Norm, BackwardComputesOnlyRequestedGradients) {
  const NormSpec spec{.width = 3, .gain = {1, 2, 3}};
  const std::vector<double> x{1, 2, 4};
  std::vector<double> dy{0.5, -1, 2}, apart(3), gain(3), bias(3), two(2);
  backward(spec, {x.data(), 1, 3}, {dy.data(), 1, 3}, {apart.data(), 1, 3}, {}, bias);
  EXPECT_EQ(bias, dy);
  backward(spec, {x.data(), 1, 3}, {dy.data(), 1, 3}, {dy.data(), 1, 3}, gain);
  EXPECT_EQ(dy, apart);
  EXPECT_THROW(backward(spec, {x.data(), 1, 3}, {dy.data(), 1, 3}, {dy.data(), 1, 3}, two), Error);
  EXPECT_THROW(backward(spec, {x.data(), 1, 3}, {two.data(), 1, 2}, {dy.data(), 1, 3}), Error);
}

TEST(Norm, KeepsItsBoundToTheEndsOfTheRange) {
  for (const NormKind kind : normscope::test::normalizing_kinds()) {
    for (const double eps : {0.0, 1e-5}) {
      for (const test::HardRow& hard : test::hard_rows<double>(30)) {
        const std::vector<double> y = normalized({.kind = kind, .width = 30, .eps = eps}, hard.entries);
        const Layer<double> layer{.kind = kind, .width = 30, .eps = eps};
        const std::vector<double> expected = test::exact(layer, hard.entries.data());
        for (std::size_t i = 0; i < 30; ++i) {
          EXPECT_NEAR(y[i], expected[i], 4 * 0x1p-53 * (1.0 + std::abs(expected[i]))) << hard.name;
        }
      }
    }
  }
}

/// A row, normalized in 106 bits before gain and bias. Differences to the first entry stand for the entries:
/// they are exact where entries agree in most of their digits, and there the mean must be accurate beside
/// them.
std::vector<DoubleDouble> exactly_normalized(const NormSpec& spec, const std::vector<double>& x) {
  std::vector<DoubleDouble> z;
  const double origin = spec.centers() ? x[0] : 0.0;
  DoubleDouble mean;
  for (const double value : x) mean += z.emplace_back(DoubleDouble::sum(value, -origin));
  mean /= static_cast<double>(x.size());
  DoubleDouble square;
  for (DoubleDouble& value : z) {
    if (spec.centers()) value -= mean;
    square += value * value;
  }
  square /= normscope::test::entries_a_square(spec.kind, x.size());
  const DoubleDouble scale = sqrt(square + DoubleDouble(spec.eps));
  for (DoubleDouble& value : z) value = scale.high == 0.0 ? DoubleDouble() : value / scale;
  return z;
}

/// Adversarial rows: entries that nearly agree, far from zero, so that the rounded mean is off by as
/// much as they vary; entries that cancel; entries of every size.
std::vector<std::vector<double>> adversarial_rows(std::size_t width, Random& random) {
  const double c = 1.0 + random.uniform();
  const auto row = [&](const auto& entry) {
    std::vector<double> x(width);
    for (std::size_t i = 0; i < width; ++i) x[i] = entry(i);
    return x;
  };
  std::vector<std::vector<double>> rows{
      row([&](std::size_t i) { return i == width / 3 ? std::nextafter(c, 4.0) : c; }),
      row([&](std::size_t i) { return i == width / 3 ? std::nextafter(c, 0.0) : c; }),
      row([&](std::size_t) { return c + 0x1p-52 * static_cast<double>(random.below(3)); }),
      row([&](std::size_t i) {
        return (i % 2 == 0 ? c : -c) + 0x1p-52 * static_cast<double>(random.below(2));
      }),
      row([&](std::size_t) { return c + 1e-8 * random.normal(); }),
      row([&](std::size_t) { return 1e6 + random.normal(); }),
      row([&](std::size_t) { return std::ldexp(random.normal(), static_cast<int>(random.below(80)) - 40); }),
      row([&](std::size_t i) { return i == 0 ? 1e100 : random.normal(); }),
      row([&](std::size_t) { return random.normal(); })};
  return rows;
}

TEST(Norm, MeetsItsBoundOnAdversarialRows) {
  Random random(17);
  for (const NormKind kind : normscope::test::normalizing_kinds()) {
    for (const std::size_t width : {1, 2, 3, 10, 49, 333, 5000}) {
      for (const std::vector<double>& x : adversarial_rows(width, random)) {
        NormSpec spec{.kind = kind, .width = width, .eps = random.below(2) == 0 ? 0.0 : 1e-12};
        const std::vector<DoubleDouble> exact = exactly_normalized(spec, x);
        const std::vector<double> dy(width, 1.0);
        std::vector<double> dx(width), dgain(width);
        backward(spec, {x.data(), 1, width}, {dy.data(), 1, width}, {dx.data(), 1, width}, dgain);
        for (std::size_t i = 0; i < width; ++i) {
          ASSERT_LE(std::abs(to_double(DoubleDouble(dgain[i]) - exact[i])),
                    12 * 0x1p-53 * (1.0 + std::abs(to_double(exact[i]))))
              << "width " << width << " dgain " << i;
        }
        for (std::size_t i = 0; i < width; ++i) spec.gain.push_back(random.normal());
        // A bias of the size of y, one that cancels y except for its last digits, and a far larger one.
        for (const int bias : {0, 1, 2}) {
          spec.bias.clear();
          for (std::size_t i = 0; i < width && bias > 0; ++i) {
            spec.bias.push_back(bias == 1 ? -to_double(exact[i] * DoubleDouble(spec.gain[i]))
                                          : 1e3 * random.normal());
          }
          const std::vector<double> y = normalized(spec, x);
          for (std::size_t i = 0; i < width; ++i) {
            const DoubleDouble core = exact[i] * DoubleDouble(spec.gain[i]);
            const DoubleDouble error = DoubleDouble(y[i]) - (core + DoubleDouble(spec.bias_at(i)));
            ASSERT_LE(std::abs(to_double(error)),
                      4 * 0x1p-53 *
                          (std::abs(to_double(core)) + std::abs(spec.gain[i]) + std::abs(spec.bias_at(i))))
                << "width " << width << " entry " << i << " bias " << bias;
          }
        }
      }
    }
  }
}

TEST(Norm, MeetsItsBoundsOnHugeConstantRows) {
  // Deviations are zero, so only eps scales the gradients: dx = (dy − mean)/sqrt(eps).
  const std::vector<double> dy{1, 2, 3, 1e8};
  const double mean = 25000001.5;
  for (const double entry : {1e300, 1.7e308, -1.7e308}) {
    const std::vector<double> x(4, entry);
    for (const double eps : {1e-5, 1e-12, 1e-200}) {
      std::vector<double> plain(4), fast(4);
      backward({.width = 4, .eps = eps}, {x.data(), 1, 4}, {dy.data(), 1, 4}, {plain.data(), 1, 4});
      normalize_backward<double>({.width = 4, .eps = eps}, {x.data(), 1, 4}, {dy.data(), 1, 4},
                                 {fast.data(), 1, 4});
      std::vector<double> y(4, NAN);
      normalize<double>({.width = 4, .eps = eps}, {x.data(), 1, 4}, {y.data(), 1, 4});
      EXPECT_EQ(y, std::vector<double>(4, 0.0)) << entry << " eps " << eps;
      for (std::size_t i = 0; i < 4; ++i) {
        const double exact = to_double(DoubleDouble(dy[i] - mean) / sqrt(DoubleDouble(eps)));
        const double size = (dy[i] + mean) / std::sqrt(eps);
        EXPECT_LE(std::abs(plain[i] - exact), 16 * 0x1p-53 * size) << entry << " eps " << eps << " at " << i;
        EXPECT_LE(std::abs(fast[i] - exact), 64 * 0x1p-53 * size) << entry << " eps " << eps << " at " << i;
      }
    }
  }
}

TEST(Norm, ErrorsNameTheSizes) {
  const auto message = [](const NormSpec& spec, std::size_t width) -> std::string {
    try {
      std::vector<double> x(width);
      forward(spec, {x.data(), 1, width}, {x.data(), 1, width});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({.width = 4}, 3), "norm: x is 1 x 3, y is 1 x 3, expected equal rows of width 4");
  EXPECT_EQ(message({.width = 4, .groups = 3}, 4), "norm: 3 groups do not divide width 4");
  EXPECT_EQ(message({.width = 4, .gain = {1, 2}}, 4), "norm: gain has 2 entries, expected the width, 4");
  EXPECT_EQ(message({.width = 1, .eps = -1}, 1), "norm: eps is -1, expected a finite number >= 0");
  EXPECT_EQ(message({.width = 1, .bias = {NAN}}, 1), "norm: bias[0] is nan, expected a finite number");
}

}  // namespace
}  // namespace normscope::norm
