#include "folds.hpp"

#include <array>
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>
#include <normscope/core/random.hpp>
#include <normscope/nets/tasks.hpp>

#include "training.hpp"

namespace normscope::lab::ln_nets {
namespace {

using Vector = std::array<double, 3>;

/// W x, plus b unless x is a direction.
Vector image(const nets::Layer& layer, const Vector& x, bool direction = false) {
  Vector y{};
  for (std::size_t i = 0; i < 3; ++i) {
    y[i] = direction ? 0.0 : layer.bias[i];
    for (std::size_t j = 0; j < 3; ++j) y[i] += layer.weight[3 * i + j] * x[j];
  }
  return y;
}

double determinant(const Vector& a, const Vector& b, const Vector& c) {
  return a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) +
         a[2] * (b[0] * c[1] - b[1] * c[0]);
}

/// The degree as the area that the image of the sphere covers, seen from the origin, over that of a sphere.
double degree_by_area(const nets::Layer& layer) {
  constexpr std::size_t points = 100;
  constexpr double step = std::numbers::pi / points;
  double area = 0.0;
  for (std::size_t i = 0; i < points; ++i) {
    const double theta = (static_cast<double>(i) + 0.5) * step;
    for (std::size_t j = 0; j < 2 * points; ++j) {
      const double phi = static_cast<double>(j) * step;
      const Vector x{std::sin(theta) * std::cos(phi), std::sin(theta) * std::sin(phi), std::cos(theta)};
      const Vector south{std::cos(theta) * std::cos(phi), std::cos(theta) * std::sin(phi), -std::sin(theta)};
      const Vector east{-std::sin(theta) * std::sin(phi), std::sin(theta) * std::cos(phi), 0.0};
      const Vector y = image(layer, x);
      const Vector along = image(layer, south, true);
      const Vector across = image(layer, east, true);
      const double length = std::sqrt(y[0] * y[0] + y[1] * y[1] + y[2] * y[2]);
      area += determinant(y, along, across) / (length * length * length) * step * step;
    }
  }
  return area / (4.0 * std::numbers::pi);
}

TEST(Folds, DegreesAreThoseOfTheIntegral) {
  Random random(4);
  std::size_t seen[3] = {};
  for (int round = 0; round < 40; ++round) {
    nets::Layer layer{.in = 3, .out = 3, .weight = std::vector<double>(9), .bias = std::vector<double>(3)};
    for (double& value : layer.weight) value = random.normal();
    for (double& value : layer.bias) value = 0.5 * random.normal();
    const Fold fold = fold_of(layer);
    if (std::abs(fold.distance - 1.0) < 0.2) continue;
    EXPECT_NEAR(degree_by_area(layer), fold.degree, 0.1) << fold.distance;
    ++seen[fold.degree + 1];
  }
  for (const std::size_t count : seen) EXPECT_GT(count, 3U);
}

TEST(Folds, AShiftFoldsTheCircleAtOne) {
  nets::Layer layer{.in = 2, .out = 2, .weight = {0.0, 1.0, 1.0, 0.0}, .bias = {0.0, 0.99}};
  EXPECT_EQ(fold_of(layer).degree, -1);
  layer.bias[1] = 1.01;
  EXPECT_EQ(fold_of(layer).degree, 0);
  EXPECT_DOUBLE_EQ(fold_of(layer).distance, 1.01);
}

TEST(Folds, RanksCountTheWindowsBefore) {
  const std::vector<int> degrees{1, 1, 0, 0, 1, 0, 0, 0, 0, 0, -1, 0};
  const std::vector<std::size_t> events = changes(degrees);
  EXPECT_EQ(events, (std::vector<std::size_t>{2, 4, 5, 10, 11}));
  // Windows of two from 1 to 7 have 1, 1, 1, 2, 1, 0, 0 changes; the one at 9 has one.
  EXPECT_DOUBLE_EQ(*rank_of_window(events, 9, 2), (2.0 + 0.5 * 4.0) / 7.0);
  EXPECT_FALSE(rank_of_window(events, 2, 2));
}

Json folds_configuration(double start, double least) {
  Json configuration = to_json({.steps = 300, .record_every = 1});
  configuration.update(Json{{"start", start}, {"least", least}});
  return configuration;
}

double measured(const Run& run, std::string_view name) {
  for (const Metric& metric : run.measured()) {
    if (metric.name == name) return metric.value;
  }
  ADD_FAILURE() << name;
  return 0.0;
}

TEST(Folds, ATrainingIsKeptBeyondItsBound) {
  const auto data = std::make_shared<const nets::Dataset>(nets::spiral(60, 3));
  lab::Run free(folds_configuration(0.0, 0.0), 3);
  train_with_folds(free, data, *data);
  EXPECT_GT(measured(free, "changes_to_95"), 0.0);
  lab::Run held(folds_configuration(0.0, 1.5), 3);
  train_with_folds(held, data, *data);
  EXPECT_EQ(measured(held, "changes_to_95"), 0.0);
  EXPECT_GE(measured(held, "distance"), 1.5 - 1e-12);
  EXPECT_EQ(measured(held, "degree"), 0.0);
  nets::Trainer moved({.seed = 3}, data, 1);
  keep_fold(moved, 2.5, 2.5);
  EXPECT_NEAR(fold_of(moved.net().layers[1]).distance, 2.5, 1e-12);
}

}  // namespace
}  // namespace normscope::lab::ln_nets
