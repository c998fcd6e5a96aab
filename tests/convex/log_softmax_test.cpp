#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/convex/log_softmax.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/numeric/sum.hpp>

namespace normscope::convex {
namespace {

struct Scores {
  std::vector<double> rows{};
  std::vector<double> offsets{};
  std::size_t width = 0;

  [[nodiscard]] MatrixView<const double> view() const { return {rows.data(), offsets.size(), width}; }
  [[nodiscard]] LogSoftmaxMaximum maximum(std::size_t target) const {
    const std::vector<std::size_t> targets{target};
    return largest_log_softmax(view(), offsets, targets).front();
  }
  [[nodiscard]] double value(std::size_t target, const std::vector<double>& point) const {
    std::vector<double> scores;
    for (std::size_t row = 0; row < offsets.size(); ++row) {
      double score = offsets[row];
      for (std::size_t i = 0; i < width; ++i) score += rows[row * width + i] * point[i];
      scores.push_back(score);
    }
    double total = 0.0;
    for (const double score : scores) total += std::exp(score - scores[target]);
    return -std::log(total);
  }
};

Scores random_scores(std::size_t count, std::size_t width, std::uint64_t seed, double size) {
  Random random(seed);
  Scores scores{.width = width};
  for (std::size_t i = 0; i < count * width; ++i) scores.rows.push_back(size * random.normal());
  for (std::size_t i = 0; i < count; ++i) scores.offsets.push_back(random.normal());
  return scores;
}

TEST(LogSoftmax, KnownMaxima) {
  // Two rows along one axis: the logistic function of their whole distance.
  const Scores two{{1, 0, -2, 0}, {0, 0.5}, 2};
  EXPECT_NEAR(two.maximum(0).lower, -std::log1p(std::exp(-2.5)), 1e-3);
  EXPECT_NEAR(two.maximum(0).upper, -std::log1p(std::exp(-2.5)), 1e-3);
  // Rows of nothing: the offsets alone.
  const Scores none{{0, 0, 0}, {1, 2, 0}, 1};
  EXPECT_NEAR(none.maximum(1).upper, -std::log(1.0 + std::exp(-1.0) + std::exp(-2.0)), 1e-12);
  EXPECT_NEAR(none.maximum(1).lower, none.maximum(1).upper, 1e-12);
}

TEST(LogSoftmax, BoundsBracketLongRuns) {
  for (const std::size_t width : {2, 8, 40}) {
    for (const double size : {0.1, 1.0, 5.0}) {
      const Scores scores = random_scores(3 * width, width, width, size);
      for (std::size_t target = 0; target < 3; ++target) {
        const LogSoftmaxMaximum maximum = scores.maximum(target);
        EXPECT_LE(maximum.upper - maximum.lower, 1e-3) << width << " " << size << " " << maximum.iterations;
        EXPECT_NEAR(scores.value(target, maximum.point), maximum.lower, 1e-10);
        EXPECT_LE(euclidean_norm(maximum.point), 1.0);
        // Short steps uphill for long: never above the bound, and in the end not below by more than the gap.
        std::vector<double> point(width, 0.0);
        const double step = 0.5 / (size * size * static_cast<double>(width));
        double value = 0.0;
        for (int i = 0; i < 1500; ++i) {
          std::vector<double> ahead = point;
          for (std::size_t k = 0; k < width; ++k) {
            std::vector<double> probe = point;
            probe[k] += 1e-6;
            const double up = scores.value(target, probe);
            probe[k] -= 2e-6;
            ahead[k] += step * (up - scores.value(target, probe)) / 2e-6;
          }
          const double length = euclidean_norm(ahead);
          for (double& x : ahead) x /= std::max(1.0, length);
          point = ahead;
          if (width > 8 && i > 300) break;  // the bracket is checked all the same
          value = scores.value(target, point);
          ASSERT_LE(value, maximum.upper + 1e-12);
        }
        if (width <= 8) {
          EXPECT_GE(value, maximum.lower - 2e-3) << width << " " << size;
        }
      }
    }
  }
}

RC_GTEST_PROP(LogSoftmax, RandomPointsStayBelow, (std::uint64_t seed)) {
  Random random(seed);
  const Scores scores =
      random_scores(1 + random.below(30), 1 + random.below(6), seed, std::exp(4.0 * random.uniform() - 2.0));
  const std::size_t target = random.below(scores.offsets.size());
  const LogSoftmaxMaximum maximum = scores.maximum(target);
  RC_ASSERT(maximum.lower <= maximum.upper);
  RC_ASSERT(maximum.upper - maximum.lower <= 1e-3);
  for (int i = 0; i < 50; ++i) {
    std::vector<double> point;
    for (std::size_t k = 0; k < scores.width; ++k) point.push_back(random.normal());
    const double length = euclidean_norm(point);
    for (double& x : point) x /= length;
    RC_ASSERT(scores.value(target, point) <= maximum.upper + 1e-12);
  }
}

TEST(LogSoftmax, BadInputIsNamed) {
  const Scores scores = random_scores(3, 2, 1, 1.0);
  EXPECT_THROW(static_cast<void>(scores.maximum(3)), Error);
}

}  // namespace
}  // namespace normscope::convex
