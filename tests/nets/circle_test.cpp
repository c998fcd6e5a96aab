#include <normscope/nets/circle.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/tasks.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::nets {
namespace {

using std::numbers::pi;
constexpr int points = 200'000;

/// First coordinate of the spherical norm of (x, y), by its definition.
double first(double x, double y, double eps) {
  double values[2] = {x, y};
  const NormSpec spec{.kind = NormKind::spherical, .width = 2, .eps = eps};
  norm::forward(spec, {values, 1, 2}, {values, 1, 2});
  return values[0];
}

RC_GTEST_PROP(Circle, CurvesAreSlicesOfTheSurface, ()) {
  const double theta = pi * *rc::gen::inRange(0, 1000) / 1000.0;
  const double t = *rc::gen::inRange(0, 60) / 10.0;
  const double eps = *rc::gen::element(1e-9, 1e-5, 0.1);
  const double x = std::cos(theta);
  const double y = std::sin(theta);
  // Both have the cancellation of 1 − x² where a shift moves a point near the origin.
  const double tolerance = 1e-6;
  RC_ASSERT(std::abs(stretched(t, x, eps) - first(t * x, y, eps)) < tolerance);
  RC_ASSERT(std::abs(folded(t, x, eps) - first(x + t, y, eps)) < tolerance);
  RC_ASSERT(std::abs(surface(t * x, y, eps) - first(t * x, y, eps)) < 1e-12);
}

RC_GTEST_PROP(Circle, MovedPointsLieOnTheCurves, ()) {
  const double theta = pi * *rc::gen::inRange(0, 2000) / 1000.0;
  const double t = *rc::gen::inRange(0, 60) / 10.0;
  const double eps = *rc::gen::element(1e-5, 0.1);
  const double point[2] = {std::cos(theta), std::sin(theta)};
  const auto landed = [&](Move move) {
    const std::vector<double> there = moved(move, t, {point, 1, 2});
    return normalized({there.data(), 1, 2}, eps);
  };
  const double tolerance = 1e-6;
  RC_ASSERT(std::abs(landed(Move::stretch)[0] - stretched(t, point[0], eps)) < tolerance);
  RC_ASSERT(std::abs(landed(Move::shift)[0] - folded(t, point[0], eps)) < tolerance);
}

TEST(Circle, TheOriginHasNoDirection) {
  const double origin[2] = {0.0, 0.0};
  EXPECT_EQ(normalized({origin, 1, 2}), (std::vector<double>{0.0, 0.0}));
}

TEST(Circle, StretchGathersTheCircleAtItsEnds) {
  // The values published with the curves of the stretch.
  for (const auto& [t, share] : {std::pair{0.2, 0.0615}, {1.0, 0.2871}, {2.0, 0.4899}, {5.0, 0.7507}}) {
    int beyond = 0;
    for (int i = 0; i < points; ++i) {
      beyond += std::abs(stretched(t, std::cos(2.0 * pi * (i + 0.5) / points))) > 0.9 ? 1 : 0;
    }
    EXPECT_NEAR(stretched_share(t, 0.9), static_cast<double>(beyond) / points, 1e-4);
    EXPECT_NEAR(stretched_share(t, 0.9), share, 5e-5);
  }
}

TEST(Circle, FoldsHaveTheMinimumOfTheFormula) {
  for (const double t : {1.1, 2.0, 3.0}) {
    double lowest = 1.0;
    for (int i = 0; i <= points; ++i) lowest = std::min(lowest, folded(t, 2.0 * i / points - 1.0));
    EXPECT_NEAR(lowest, fold_minimum(t), 1e-9);
    EXPECT_NEAR(folded(t, -1.0 / t), fold_minimum(t), 1e-15);
    EXPECT_NEAR(folded(t, -1.0), 1.0, 1e-14);
  }
}

TEST(Circle, TheFoldHappensAtOne) {
  for (const double t : {0.0, 0.5, 0.9, 0.99}) EXPECT_EQ(fold_winding(t), 1) << t;
  for (const double t : {1.01, 1.1, 2.0, 5.0}) EXPECT_EQ(fold_winding(t), 0) << t;
}

TEST(Circle, PointsMoveFastestJustBeforeTheFold) {
  for (const double t : {0.5, 0.9, 1.1, 2.0}) {
    double fastest = 0.0;
    const auto angle = [&](double theta) { return std::atan2(std::sin(theta), std::cos(theta) + t); };
    for (int i = 0; i < points; ++i) {
      const double step = 2.0 * pi / points;
      fastest = std::max(fastest,
                         std::abs(std::remainder(angle((i + 1) * step) - angle(i * step), 2.0 * pi)) / step);
    }
    EXPECT_NEAR(fastest, fold_speed(t), 1e-4 * fold_speed(t));
  }
}

TEST(Circle, TheShiftMovesPointsFastestJustBeforeTheFold) {
  for (const double t : {0.0, 0.5, 0.9, 1.1, 2.0}) {
    double fastest = 0.0;
    double there = 0.0;
    const double step = 1e-6;
    for (int i = 0; i < points; ++i) {
      const double theta = 2.0 * pi * i / points;
      const auto angle = [&](double shift) { return std::atan2(std::sin(theta), std::cos(theta) + shift); };
      const double speed = std::abs(std::remainder(angle(t + step) - angle(t - step), 2.0 * pi)) / (2 * step);
      if (speed > fastest) there = theta;
      fastest = std::max(fastest, speed);
    }
    EXPECT_NEAR(fastest, fold_speed_of_shift(t), 1e-4 * fold_speed_of_shift(t));
    EXPECT_NEAR(std::cos(there), -2.0 * t / (1.0 + t * t), 1e-2);
  }
}

TEST(Morph, FramesLieOnTheLineBetweenStates) {
  const Dataset data = spiral(20, 1);
  const Net net = Trainer({}, data).net();
  const std::vector<std::vector<double>> outputs = trace(net, data.view());
  EXPECT_EQ(morph_frame(net, data, 1.0), outputs[0]);
  EXPECT_EQ(morph_frame(net, data, 2.0), outputs[1]);
  const std::vector<double> begin = morph_frame(net, data, 0.0);
  const std::vector<double> between = morph_frame(net, data, 0.25);
  for (std::size_t row = 0; row < data.rows(); ++row) {
    EXPECT_EQ(begin[3 * row + 1], data.x[2 * row + 1]);
    EXPECT_EQ(begin[3 * row + 2], 0.0);
    for (std::size_t i = 3 * row; i < 3 * row + 3; ++i) {
      EXPECT_NEAR(between[i], 0.75 * begin[i] + 0.25 * outputs[0][i], 1e-15);
    }
  }
}

TEST(Morph, StepsAreTheLinearMapAndThenTheNorm) {
  const Dataset data = spiral(20, 1);
  const Net net = Trainer({}, data).net();
  const MorphStates states = morph_states(net, data.view());
  const MorphStates steps = morph_steps(net, data.view());
  ASSERT_EQ(steps.width, 3);
  ASSERT_EQ(steps.list.size(), 5);
  for (std::size_t l = 0; l <= 2; ++l) EXPECT_EQ(steps.list[2 * l], states.list[l]);
  for (std::size_t l = 0; l < 2; ++l) {
    const Layer& layer = net.layers[l];
    for (std::size_t row = 0; row < data.rows(); ++row) {
      const double* linear = &steps.list[2 * l + 1][3 * row];
      const double* after = &steps.list[2 * l + 2][3 * row];
      const double length = std::hypot(linear[0], linear[1], linear[2]);
      for (std::size_t out = 0; out < 3; ++out) {
        double sum = layer.bias[out];
        for (std::size_t in = 0; in < layer.in; ++in) {
          sum += layer.weight[out * layer.in + in] * states.list[l][3 * row + in];
        }
        EXPECT_NEAR(linear[out], sum, 1e-14);
        EXPECT_NEAR(after[out], linear[out] / std::sqrt(length * length + layer.norm.eps), 1e-12);
      }
    }
  }
}

TEST(Curves, ThinnedCurvesKeepTheFirstAndTheLastRecord) {
  std::vector<double> loss(1001);
  std::vector<double> accuracy(loss.size());
  for (std::size_t i = 0; i < loss.size(); ++i) loss[i] = accuracy[i] = static_cast<double>(i);
  for (const std::size_t most : {1U, 3U, 100U, 1000U, 5000U}) {
    const Curves shown = thinned(loss, accuracy, 10, most);
    EXPECT_LE(shown.step.size(), most + 1);
    EXPECT_EQ(shown.step.front(), 0.0);
    EXPECT_EQ(shown.step.back(), 10000.0);
    for (std::size_t i = 0; i < shown.step.size(); ++i) {
      EXPECT_EQ(shown.step[i], 10.0 * shown.loss[i]);
      EXPECT_EQ(shown.loss[i], shown.accuracy[i]);
    }
  }
  EXPECT_TRUE(thinned({}, {}, 10, 5).step.empty());
}

}  // namespace

}  // namespace normscope::nets
