#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/proof/ball.hpp>

#include "mixed_sizes.hpp"

namespace normscope::proof {
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
    const double highest = *std::max_element(scores.begin(), scores.end());
    double total = 0.0;
    for (const double score : scores) total += std::exp(score - highest);
    return scores[target] - highest - std::log(total);
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
  // Two rows along one axis: the logistic function of their distance plus offsets.
  const Scores two{{1, 0, -2, 0}, {0, 0.5}, 2};
  EXPECT_NEAR(two.maximum(0).lower, -std::log1p(std::exp(-2.5)), 1e-3);
  EXPECT_NEAR(two.maximum(0).upper, -std::log1p(std::exp(-2.5)), 1e-3);
  // Zero rows: the offsets alone.
  const Scores none{{0, 0, 0}, {1, 2, 0}, 1};
  EXPECT_NEAR(none.maximum(1).upper, -std::log(1.0 + std::exp(-1.0) + std::exp(-2.0)), 1e-12);
  EXPECT_NEAR(none.maximum(1).lower, none.maximum(1).upper, 1e-12);
}

TEST(LogSoftmax, BoundsBracketLongRuns) {
  for (const std::size_t width : {2, 8}) {
    for (const double size : {0.1, 1.0, 5.0}) {
      const Scores scores = random_scores(3 * width, width, width, size);
      for (std::size_t target = 0; target < 3; ++target) {
        const LogSoftmaxMaximum maximum = scores.maximum(target);
        EXPECT_LE(maximum.upper - maximum.lower, 1e-3) << width << " " << size << " " << maximum.iterations;
        EXPECT_NEAR(scores.value(target, maximum.point), maximum.lower, 1e-10);
        EXPECT_LE(euclidean_norm(maximum.point), 1.0);
        // Plain gradient ascent with short steps: never above the upper bound, and finally close to the
        // lower.
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
          value = scores.value(target, point);
          ASSERT_LE(value, maximum.upper + 1e-12);
        }
        EXPECT_GE(value, maximum.lower - 2e-3) << width << " " << size;
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

/// The largest value over the ball by an independent search: nested golden sections, one per coordinate,
/// since the maximum over the last coordinates is concave in the others.
double searched(const Scores& scores, std::size_t target, std::vector<double>& point, std::size_t axis,
                double square) {
  if (axis == scores.width) return scores.value(target, point);
  const double reach = std::sqrt(std::max(0.0, 1.0 - square));
  const double ratio = 0.5 * (std::sqrt(5.0) - 1.0);
  double low = -reach, high = reach;
  const auto at = [&](double x) {
    point[axis] = x;
    return searched(scores, target, point, axis + 1, square + x * x);
  };
  double left = high - ratio * (high - low), right = low + ratio * (high - low);
  double value_left = at(left), value_right = at(right);
  double best = std::max({at(low), at(high), value_left, value_right});
  while (high - low > 1e-10) {
    if (value_left < value_right) {
      low = left;
      left = right;
      value_left = value_right;
      best = std::max(best, value_right = at(right = low + ratio * (high - low)));
    } else {
      high = right;
      right = left;
      value_right = value_left;
      best = std::max(best, value_left = at(left = high - ratio * (high - low)));
    }
  }
  return best;
}

TEST(LogSoftmax, AgreesWithASearchAtAnySizeOfLogits) {
  for (const double size : {1.0, 10.0, 100.0, 1e3, 1e4}) {
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const Scores scores = random_scores(6, 1 + seed % 2, seed, size);
      for (std::size_t target = 0; target < 6; ++target) {
        const LogSoftmaxMaximum maximum = scores.maximum(target);
        std::vector<double> point(scores.width);
        const double found = searched(scores, target, point, 0, 0.0);
        EXPECT_LE(found, maximum.upper + 1e-9 * size) << size << " " << seed << " " << target;
        EXPECT_GE(found, maximum.lower - 1e-6 * size) << size << " " << seed << " " << target;
        EXPECT_LE(maximum.upper - maximum.lower, 1e-3) << size << " " << seed << " " << target;
      }
    }
  }
}

TEST(LogSoftmax, BoundsMeetAtLargeLogits) {
  for (const double size : {30.0, 300.0, 3e3, 3e4}) {
    for (const std::size_t width : {2, 8, 20}) {
      Scores scores = random_scores(50, width, width + 1, size);
      // Tokens in or near the hull of others, whose maximum is below one half.
      for (std::size_t token = 0; token < 3; ++token) {
        for (std::size_t i = 0; i < width; ++i) {
          double& value = scores.rows[token * width + i];
          value = 1e-3 * static_cast<double>(token) * value;
          for (std::size_t k = 0; k < 3; ++k) {
            value += scores.rows[(10 + 3 * token + k) * width + i] / 3.0;
          }
        }
      }
      for (const std::size_t target : {0, 1, 2, 20, 31}) {
        const LogSoftmaxMaximum maximum = scores.maximum(target);
        EXPECT_LE(maximum.upper - maximum.lower, 1e-3) << size << " " << width << " " << target;
        EXPECT_NEAR(scores.value(target, maximum.point), maximum.lower, 1e-9 * size);
        if (target == 0) {
          EXPECT_LE(maximum.upper, -std::log(2.0)) << "it is the mean of three others";
        }
      }
    }
  }
}

TEST(LogSoftmax, BoundsAreProvedInFloat32AndWithThreads) {
  // Logits of the largest size for which float32 is used.
  const Scores scores = random_scores(6000, 48, 3, 3.0);
  const std::vector<std::size_t> targets{0, 1, 2, 3, 4};
  const auto one = largest_log_softmax(scores.view(), scores.offsets, targets, {.gap = 1e-2});
  const auto three = largest_log_softmax(scores.view(), scores.offsets, targets, {.gap = 1e-2, .threads = 3});
  for (std::size_t k = 0; k < targets.size(); ++k) {
    EXPECT_LE(one[k].upper - one[k].lower, 1e-2);
    EXPECT_NEAR(scores.value(targets[k], one[k].point), one[k].lower, 1e-8);
    EXPECT_EQ(one[k].lower, three[k].lower);
    EXPECT_EQ(one[k].upper, three[k].upper);
  }
}

TEST(LogSoftmax, PointsProveTheBoundsThatTheyCameWith) {
  const Scores scores = random_scores(40, 3, 5, 2.0);
  std::vector<std::size_t> targets(40);
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i] = i;
  const std::vector<LogSoftmaxMaximum> found = largest_log_softmax(scores.view(), scores.offsets, targets);
  std::vector<std::vector<double>> points;
  for (const LogSoftmaxMaximum& maximum : found) {
    points.push_back(maximum.point);
    points.push_back(maximum.tangent.empty() ? maximum.point : maximum.tangent);
  }
  const auto proved = prove_log_softmax(scores.view(), scores.offsets, targets, points);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(proved[i].lower, found[i].lower, 1e-9);
    EXPECT_NEAR(proved[i].upper, found[i].upper, 1e-9);
    EXPECT_LE(proved[i].upper - proved[i].lower, 1.1e-3);
    const Bounded at = log_softmax_at(scores.view(), scores.offsets, i, found[i].point);
    EXPECT_NEAR(at.value, scores.value(i, found[i].point), at.error + 1e-12);
    EXPECT_LT(at.error, 1e-10);
  }
  points.pop_back();
  EXPECT_THROW((void)prove_log_softmax(scores.view(), scores.offsets, targets, points), Error);
  points.push_back({1.0, 0.0});
  EXPECT_THROW((void)prove_log_softmax(scores.view(), scores.offsets, targets, points), Error);
  points.back() = {1.0, 0.0, std::nan("")};
  EXPECT_THROW((void)prove_log_softmax(scores.view(), scores.offsets, targets, points), Error);
}

/// f(u) + |g| − g·u with probabilities of logits in extended precision, each changed by up to `rounding`.
double bound_at(const Scores& scores, std::size_t target, const std::vector<double>& point, double rounding,
                Random& random) {
  const std::size_t count = scores.offsets.size();
  std::vector<long double> logits;
  for (std::size_t row = 0; row < count; ++row) {
    long double logit = scores.offsets[row];
    for (std::size_t i = 0; i < scores.width; ++i) {
      logit += static_cast<long double>(scores.rows[row * scores.width + i]) * point[i];
    }
    logits.push_back(logit + rounding * (random.uniform() < 0.5 ? -1.0 : 1.0));
  }
  const long double highest = *std::max_element(logits.begin(), logits.end());
  long double total = 0.0L;
  for (const long double logit : logits) total += std::exp(logit - highest);
  const long double value = logits[target] - highest - std::log(total);
  long double square = 0.0L;
  long double along = 0.0L;
  for (std::size_t i = 0; i < scores.width; ++i) {
    long double entry = scores.rows[target * scores.width + i];
    for (std::size_t row = 0; row < count; ++row) {
      entry -= std::exp(logits[row] - highest) / total * scores.rows[row * scores.width + i];
    }
    square += entry * entry;
    along += entry * point[i];
  }
  return static_cast<double>(value + std::sqrt(square) - along);
}

/// |Σ p_j (A_i − A_j)| + Σ p_j (a_i − a_j) + Σ p_j log p_j, in extended precision.
double bound_by(const Scores& scores, std::size_t target, const std::vector<PointWeight>& weights) {
  long double sum = 0.0L;
  for (const PointWeight& weight : weights) sum += weight.weight;
  std::vector<long double> difference(scores.width);
  long double bound = 0.0L;
  for (const auto& [id, weight] : weights) {
    const long double p = weight / sum;
    bound += p * (static_cast<long double>(scores.offsets[target]) - scores.offsets[id] + std::log(p));
    for (std::size_t i = 0; i < scores.width; ++i) {
      difference[i] += p * (static_cast<long double>(scores.rows[target * scores.width + i]) -
                            scores.rows[id * scores.width + i]);
    }
  }
  long double square = 0.0L;
  for (const long double entry : difference) square += entry * entry;
  return static_cast<double>(bound + std::sqrt(square));
}

/// With large logits, the last digits of a point decide its probabilities, and with them the bound.
TEST(LogSoftmax, OthersFindNoLargerBound) {
  std::size_t by_weights = 0;
  for (const double size : {1.0, 1e3, 1e5, 1e6, 1e7, 1e8}) {
    for (const double rounding : {0.0, 2.0 * unit_roundoff * size}) {
      for (std::uint64_t seed = 0; seed < 8; ++seed) {
        Random random(seed);
        const Scores scores = random_scores(7, 2 + seed % 3, seed, size);
        std::vector<std::size_t> targets(7);
        for (std::size_t i = 0; i < 7; ++i) targets[i] = i;
        const std::vector<LogSoftmaxMaximum> found =
            largest_log_softmax(scores.view(), scores.offsets, targets, {.rounding = rounding});
        for (const std::size_t target : targets) {
          const auto& [point, tangent, weights, lower, upper, steps] = found[target];
          const auto where = testing::Message() << size << " " << rounding << " " << seed << " " << target;
          EXPECT_LE(upper - lower, size <= 1e6 ? 1e-3 : 0.1) << where;
          if (!weights.empty()) {
            ++by_weights;
            EXPECT_LE(bound_by(scores, target, weights), upper) << where;
            continue;
          }
          for (int i = 0; i < 20 && !tangent.empty(); ++i) {
            EXPECT_LE(bound_at(scores, target, tangent, rounding, random), upper) << where;
          }
        }
      }
    }
  }
  EXPECT_GT(by_weights, 50u);
}

/// Many rows matter, so that their probabilities are not stated.
TEST(LogSoftmax, OthersFindNoLargerBoundWithManyRows) {
  Scores scores = random_scores(200, 2, 1, 1e-3);
  for (std::size_t row = 0; row < 100; ++row) scores.rows[2 * row] += row % 2 == 0 ? 1e6 : -1e6;
  const LogSoftmaxMaximum maximum = scores.maximum(150);
  EXPECT_TRUE(maximum.weights.empty());
  ASSERT_FALSE(maximum.tangent.empty());
  Random random(1);
  EXPECT_LE(bound_at(scores, 150, maximum.tangent, 0.0, random), maximum.upper);
  EXPECT_GE(maximum.upper, maximum.lower);
}

TEST(LogSoftmax, BoundsHoldWhereWorkEnds) {
  const Scores scores = random_scores(60, 4, 7, 30.0);
  const std::vector<std::size_t> targets{0, 1, 2, 3, 4, 5};
  const auto bounds = [&](const LogSoftmaxOptions& options) {
    return largest_log_softmax(scores.view(), scores.offsets, targets, options);
  };
  const auto full = bounds({.gap = 1e-6});
  bool any = false;
  // No step of Newton's method, and one for a few rows.
  for (const double work : {0.0, 3000.0}) {
    const auto limited = bounds({.gap = 1e-6, .iterations = 1, .newton_work = work});
    for (std::size_t k = 0; k < targets.size(); ++k) {
      EXPECT_LE(limited[k].lower, full[k].upper) << k;
      EXPECT_GE(limited[k].upper, full[k].lower) << k;
      EXPECT_LE(full[k].upper - full[k].lower, 1e-6) << k;
      any = any || limited[k].upper - limited[k].lower > 1e-6;
    }
  }
  EXPECT_TRUE(any);
}

TEST(LogSoftmax, BoundsHoldForRowsOfManySizes) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const MixedRows rows = mixed_rows(seed);
    double size = 0.0;
    for (const double value : rows.values) size = std::max(size, std::abs(value));
    for (const double value : rows.offsets) size = std::max(size, std::abs(value));
    if (size > 1e50) continue;
    const Scores scores{rows.values, rows.offsets, rows.width};
    const LogSoftmaxMaximum maximum = scores.maximum(seed % rows.offsets.size());
    EXPECT_LE(maximum.lower, maximum.upper) << seed;
    EXPECT_LE(maximum.upper, 0.0) << seed;
    EXPECT_GE(scores.value(seed % rows.offsets.size(), maximum.point), maximum.lower) << seed;
  }
}

TEST(LogSoftmax, ShapesHaveToFit) {
  const std::vector<double> values = {1, 2, 3, 4};
  const std::vector<std::size_t> first = {0};
  const auto refused = [&](std::size_t rows, std::size_t width, std::size_t offsets) {
    const MatrixView<const double> view(values.data(), rows, width);
    EXPECT_THROW((void)largest_log_softmax(view, std::span(values).first(offsets), first), Error);
  };
  refused(0, 2, 0);
  refused(2, 0, 2);
  refused(2, 2, 1);
}

TEST(LogSoftmax, BadInputIsNamed) {
  const Scores scores = random_scores(3, 2, 1, 1.0);
  EXPECT_THROW(static_cast<void>(scores.maximum(3)), Error);
  const Scores huge = random_scores(3, 2, 1, 1e80);
  EXPECT_THROW(static_cast<void>(huge.maximum(0)), Error);
}

}  // namespace
}  // namespace normscope::proof
