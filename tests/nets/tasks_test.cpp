#include <normscope/nets/tasks.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include <normscope/nets/evaluate.hpp>

namespace normscope::nets {
namespace {

TEST(Tasks, EveryTaskIsWhatItsNameSays) {
  for (const Task& task : tasks()) {
    const Dataset data = task.make(task.rows, 5);
    EXPECT_EQ(data.rows(), task.rows) << task.name;
    EXPECT_NO_THROW(validate(task.name, data));
    EXPECT_EQ(data.x, task.make(task.rows, 5).x) << task.name;
    EXPECT_NE(data.x, task.make(task.rows, 6).x) << task.name;
    for (std::size_t label = 0; label < data.classes; ++label) {
      const auto count = static_cast<double>(std::count(data.labels.begin(), data.labels.end(), label));
      EXPECT_NEAR(count / static_cast<double>(data.rows()), 1.0 / static_cast<double>(data.classes), 0.06);
    }
    EXPECT_NO_THROW(validate(task.spec));
    const std::optional<Task> found = find_task(task.name);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->claim, task.claim);
    if (task.test) {
      EXPECT_NE(task.test(5).x, data.x) << task.name;
    }
  }
  EXPECT_FALSE(find_task("nothing"));
}

TEST(Tasks, NoiseHasItsDeviation) {
  const Dataset clean = spiral(2000, 7);
  const Dataset noisy = with_noise(clean, 0.3, 7);
  double squares = 0.0;
  double across = 0.0;
  for (std::size_t i = 0; i < clean.x.size(); ++i) {
    squares += (noisy.x[i] - clean.x[i]) * (noisy.x[i] - clean.x[i]);
    across += (noisy.x[i] - clean.x[i]) * clean.x[i];
  }
  const auto count = static_cast<double>(clean.x.size());
  EXPECT_NEAR(std::sqrt(squares / count), 0.3, 0.01);
  EXPECT_NEAR(across / count, 0.0, 0.01);
  EXPECT_EQ(noisy.labels, clean.labels);
  EXPECT_EQ(noisy.x, with_noise(clean, 0.3, 7).x);
  EXPECT_NE(noisy.x, with_noise(clean, 0.3, 8).x);
  EXPECT_EQ(with_noise(clean, 0.0, 7).x, clean.x);
}

TEST(Tasks, ANetForUnscaledFeaturesGivesTheSame) {
  constexpr double shift = 33.0;
  constexpr double scale = 0.0125;
  Dataset scaled = octants(50, 3);
  const Net net = Trainer({.width = 6, .depth = 2, .norm = NormKind::layer}, scaled).net();
  const std::vector<double> wanted = evaluate(net, scaled.view());
  for (double& value : scaled.x) value = value / scale + shift;
  const std::vector<double> got = evaluate(for_unscaled(net, shift, scale), scaled.view());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-12);
}

TEST(Tasks, NeighbouringOctantsDiffer) {
  const Dataset data = octants(500, 1);
  for (std::size_t row = 0; row < data.rows(); ++row) {
    const auto x = data.view().row(row);
    EXPECT_NEAR(x[0] * x[0] + x[1] * x[1] + x[2] * x[2], 1.0, 1e-12);
    EXPECT_EQ(data.labels[row], x[0] * x[1] * x[2] > 0.0 ? 1U : 0U);
  }
}

TEST(Tasks, SpiralArmsAreHalfATurnApart) {
  using std::numbers::pi;
  const Dataset data = spiral(400, 1, 1.0);
  for (std::size_t row = 0; row < data.rows(); ++row) {
    const auto x = data.view().row(row);
    const double s = std::hypot(x[0], x[1]);
    const double turn = std::cos(std::atan2(x[1], x[0]) - 2.0 * pi * s);
    // Noise of 0.02 rotates a point at radius 0.15 by less than a radian.
    EXPECT_GT(data.labels[row] == 0 ? turn : -turn, 0.0) << row;
  }
}

}  // namespace
}  // namespace normscope::nets
