#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/norm/image.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::norm {
namespace {

MatrixView<double> one_row(std::vector<double>& x) { return {x.data(), 1, x.size()}; }

NormSpec random_spec(NormKind kind, std::size_t groups, std::uint64_t seed) {
  Random random(seed);
  NormSpec spec{.kind = kind, .width = groups * (2 + random.below(6)), .groups = groups, .eps = 1e-5};
  for (std::size_t i = 0; i < spec.width; ++i) {
    spec.gain.push_back(random.normal());
    spec.bias.push_back(random.normal());
  }
  return spec;
}

std::vector<double> random_row(std::size_t width, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> x(width);
  for (double& value : x) value = 1.0 + 3.0 * random.normal();
  return x;
}

RC_GTEST_PROP(Steps, TogetherAreTheNorm, (std::uint64_t seed)) {
  const auto kind = *rc::gen::element(NormKind::layer, NormKind::rms, NormKind::spherical);
  const NormSpec spec = random_spec(kind, *rc::gen::element<std::size_t>(1, 2, 5), seed);
  std::vector<double> x = random_row(spec.width, seed + 1);
  std::vector<double> y(spec.width);
  norm::forward(spec, one_row(x), one_row(y));
  for (const Step step : {Step::project, Step::scale, Step::stretch, Step::shift}) {
    apply(step, spec, one_row(x), one_row(x));
  }
  for (std::size_t i = 0; i < spec.width; ++i)
    RC_ASSERT(std::abs(x[i] - y[i]) <= 1e-13 * (1.0 + std::abs(y[i])));
}

TEST(Steps, AreTheNormAlsoFarFromTheOrigin) {
  // The entries differ by a few roundings of the mean, so a single pass of centring leaves its error.
  const NormSpec spec{.width = 5, .eps = 0.0};
  std::vector<double> x{1e8, 1e8 + 1.5e-8, 1e8 + 3e-8, 1e8, 1e8};
  std::vector<double> y(5);
  norm::forward(spec, one_row(x), one_row(y));
  for (const Step step : {Step::project, Step::scale}) apply(step, spec, one_row(x), one_row(x));
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(x[i], y[i], 1e-14);
}

RC_GTEST_PROP(Steps, ProjectionRemovesAllOnesAndRepeatsToItself, (std::uint64_t seed)) {
  const NormSpec spec = random_spec(NormKind::layer, 2, seed);
  std::vector<double> x = random_row(spec.width, seed);
  project(spec, one_row(x), one_row(x));
  for (std::size_t begin = 0; begin < spec.width; begin += spec.block_width()) {
    RC_ASSERT(std::abs(sum(std::span<const double>(x).subspan(begin, spec.block_width()))) <= 1e-13);
  }
  std::vector<double> again = x;
  project(spec, one_row(again), one_row(again));
  for (std::size_t i = 0; i < x.size(); ++i) RC_ASSERT(std::abs(again[i] - x[i]) <= 1e-14);
}

RC_GTEST_PROP(Steps, ScaleFillsTheSphereOnlyWithoutEps, (std::uint64_t seed)) {
  NormSpec spec = random_spec(NormKind::rms, 1, seed);
  std::vector<double> x = random_row(spec.width, seed);
  std::vector<double> y(spec.width);
  spec.eps = 0.0;
  scale(spec, one_row(x), one_row(y));
  RC_ASSERT(std::abs(euclidean_norm(y) / std::sqrt(static_cast<double>(spec.width)) - 1.0) <= 1e-14);
  // With eps, the relative radius is r / sqrt(r² + N eps).
  spec.eps = 0.5;
  scale(spec, one_row(x), one_row(y));
  const double r = euclidean_norm(x);
  const double expected = r / std::sqrt(r * r + static_cast<double>(spec.width) * spec.eps);
  RC_ASSERT(std::abs(euclidean_norm(y) / std::sqrt(static_cast<double>(spec.width)) - expected) <= 1e-14);
}

RC_GTEST_PROP(Steps, EveryOutputLiesInTheImage, (std::uint64_t seed)) {
  NormSpec spec = random_spec(NormKind::layer, 1, seed);
  std::vector<double> x = random_row(spec.width, seed);
  apply(Step::project, spec, one_row(x), one_row(x));
  double squares = 0.0;
  for (const double value : x) squares += value * value;
  // On the ellipsoid this is 1; eps keeps a row inside.
  const double expected = squares / (squares + static_cast<double>(spec.width) * spec.eps);
  for (const Step step : {Step::scale, Step::stretch}) apply(step, spec, one_row(x), one_row(x));
  const NormImage image(spec);
  std::vector<double> axis(spec.width);
  double relative = 0.0;
  for (std::size_t rank = 0; rank < image.semi_axes().size(); ++rank) {
    image.axis(rank, axis);
    double along = 0.0;
    for (std::size_t i = 0; i < spec.width; ++i) along += axis[i] * x[i];
    relative += along * along / (image.semi_axes()[rank] * image.semi_axes()[rank]);
  }
  RC_ASSERT(std::abs(relative - expected) <= 1e-10);
}

std::vector<double> stepped(Step step, const NormSpec& spec, std::vector<double> x) {
  apply(step, spec, one_row(x), one_row(x));
  return x;
}

TEST(Steps, ProjectIsRightToTheEndsOfTheRange) {
  constexpr double least = std::numeric_limits<double>::denorm_min();
  constexpr double most = std::numeric_limits<double>::max();
  const auto project = [](const std::vector<double>& x) {
    return stepped(Step::project, {.width = x.size()}, x);
  };
  EXPECT_EQ(project({1e308, 1.5e308}), (std::vector<double>{-2.5e307, 2.5e307}));
  EXPECT_EQ(project({most, most, most}), (std::vector<double>{0.0, 0.0, 0.0}));
  EXPECT_EQ(project({most, 0.0}), (std::vector<double>{most / 2, -most / 2}));
  EXPECT_EQ(project({2 * least, 4 * least}), (std::vector<double>{-least, least}));
  EXPECT_EQ(project({5 * least, 6 * least, 7 * least}), (std::vector<double>{-least, 0.0, least}));
  // Only results that are themselves out of range are infinite.
  EXPECT_EQ(project({most, -most, -most, -most})[0], infinity);
  EXPECT_NEAR(project({most, -most, -most, -most})[1] / (-most / 2), 1.0, 1e-15);
  EXPECT_EQ(stepped(Step::project, {.kind = NormKind::rms, .width = 2}, {most, least}),
            (std::vector<double>{most, least}));
}

TEST(Steps, ScaleIsRightToTheEndsOfTheRange) {
  constexpr double least = std::numeric_limits<double>::denorm_min();
  constexpr double most = std::numeric_limits<double>::max();
  for (const NormKind kind : {NormKind::layer, NormKind::rms, NormKind::spherical}) {
    for (const double eps : {0.0, 1e-300, 1e-5}) {
      const NormSpec spec{.kind = kind, .width = 2, .eps = eps};
      const double half = kind == NormKind::spherical ? std::sqrt(0.5) : 1.0;
      for (const double size : {most, 1.5e308, 1e154, 1.0 / 0x1p-10}) {
        for (const double y : stepped(Step::scale, spec, {size, -size})) EXPECT_NEAR(std::abs(y), half, 1e-5);
      }
    }
    const NormSpec plain{.kind = kind, .width = 2, .eps = 0.0};
    const double radius = kind == NormKind::spherical ? 1.0 : std::sqrt(2.0);
    for (const double size : {most / 4, 1e-300, least}) {
      const std::vector<double> y = stepped(Step::scale, plain, {3 * size, 4 * size});
      EXPECT_NEAR(y[0], 0.6 * radius, 4e-16) << size;
      EXPECT_NEAR(y[1], 0.8 * radius, 4e-16) << size;
    }
  }
  // If eps dominates the row, y = x/√eps, also for the least number and the least eps.
  EXPECT_EQ(stepped(Step::scale, {.kind = NormKind::rms, .width = 2, .eps = 0x1p-1074}, {least, 2 * least}),
            (std::vector<double>{0x1p-537, 0x1p-536}));
  EXPECT_EQ(stepped(Step::scale, {.kind = NormKind::rms, .width = 2, .eps = 4.0}, {64 * least, least * 4}),
            (std::vector<double>{32 * least, 2 * least}));
  EXPECT_EQ(stepped(Step::scale, {.kind = NormKind::rms, .width = 2, .eps = 0x1p996}, {0x1p-400, 0.0}),
            (std::vector<double>{0x1p-898, 0.0}));
}

TEST(Steps, ScaleRoundsWhatUnderflowsOnlyOnce) {
  std::vector<double> x(4096);
  x[0] = 0x1p600;
  x[1] = 0.49 * 0x1p-474;  // times the radius, 64, over 2^600: 31.36 of the least number
  const NormSpec spec{.kind = NormKind::rms, .width = x.size(), .eps = 0.0};
  const std::vector<double> y = stepped(Step::scale, spec, x);
  EXPECT_EQ(y[0], 64.0);
  EXPECT_EQ(y[1], 31 * std::numeric_limits<double>::denorm_min());
}

TEST(Steps, TogetherAreTheNormOfRowsOfEverySize) {
  const std::vector<double> row = random_row(30, 3);
  for (const NormKind kind : {NormKind::layer, NormKind::rms, NormKind::spherical}) {
    NormSpec spec = random_spec(kind, 2, 7);
    for (const double eps : {0.0, 1e-5}) {
      for (const int exponent : {-1060, -1022, -540, -200, 200, 540, 1000, 1018}) {
        spec.eps = eps;
        std::vector<double> x(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(spec.width));
        for (double& value : x) value = std::scalbn(value, exponent);
        std::vector<double> y(spec.width);
        norm::forward(spec, one_row(x), one_row(y));
        for (const Step step : {Step::project, Step::scale, Step::stretch, Step::shift}) {
          apply(step, spec, one_row(x), one_row(x));
        }
        // The result of `project` is rounded, to few digits if numbers are subnormal.
        const double part = exponent < -1000 ? std::scalbn(1.0, -1072 - exponent) : 1e-14;
        for (std::size_t i = 0; i < spec.width; ++i) {
          EXPECT_NEAR(x[i], y[i], 8 * part * (1.0 + std::abs(y[i]))) << exponent << " " << i;
        }
      }
    }
  }
}

TEST(Steps, NamesAreTheFour) {
  EXPECT_EQ(step("stretch"), Step::stretch);
  EXPECT_ANY_THROW(static_cast<void>(step("squash")));
}

}  // namespace
}  // namespace normscope::norm
