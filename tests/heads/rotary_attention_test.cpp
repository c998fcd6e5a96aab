#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/heads/attention.hpp>
#include <normscope/norm/norm.hpp>

#include "rotary_case.hpp"

namespace normscope::heads {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// The largest spread found by a random search with decreasing steps, at the given angles.
double searched_spread(const RotaryCase& c, const std::vector<double>& high, const std::vector<double>& low,
                       Random& random) {
  std::vector<VectorXd> points = {c.point(random), c.point(random), c.point(random)};
  const auto spread = [&](const std::vector<VectorXd>& at) {
    const VectorXd q = c.query_of(c.row(at[0]));
    return c.score(q, c.key_of(c.row(at[1])), high) - c.score(q, c.key_of(c.row(at[2])), low);
  };
  double best = spread(points);
  double step = 1.0;
  for (int i = 0; i < 150; ++i) {
    std::vector<VectorXd> next = points;
    for (VectorXd& u : next) u += step * c.point(random);
    const double found = spread(next);
    if (found > best) {
      best = found;
      points = std::move(next);
    } else {
      step *= 0.97;
    }
  }
  return best;
}

TEST(RotaryAttention, NoContextIsBeyondTheBounds) {
  std::size_t above_distance_zero = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RotaryCase c = random_rotary_case(seed);
    const Attention a = c.bounds();
    ASSERT_TRUE(a.distances.has_value());
    EXPECT_LE(a.sharpest.lower, a.sharpest.upper) << seed;
    EXPECT_LE(a.sharpest.upper, a.distances->sharpest_anywhere) << seed;
    EXPECT_LE(a.most_uniform.lower, a.most_uniform.upper) << seed;
    EXPECT_LE(a.most_uniform.upper, a.distances->uniform_anywhere) << seed;
    EXPECT_LE(a.most_uniform.upper, a.sharpest.upper) << seed;
    Random random(seed + 99);
    for (int i = 0; i < 8; ++i) {
      const std::size_t high = random.below(c.distances());
      const std::size_t low = random.below(c.distances());
      const double found = searched_spread(c, c.angles_at(high), c.angles_at(low), random);
      EXPECT_LE(found, a.sharpest.upper * (1.0 + 1e-12)) << seed;
      if (found > a.distances->sharpest_at_zero.upper) ++above_distance_zero;
    }
  }
  EXPECT_GT(above_distance_zero, 5u) << "bounds at distance 0 do not hold at other distances";
}

TEST(RotaryAttention, TheBoundAtEveryDistanceHoldsForAnyFrequencies) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    RotaryCase c = random_rotary_case(seed);
    const double anywhere = c.bounds().distances->sharpest_anywhere;
    std::vector<double> kept;
    std::swap(kept, c.frequencies);
    c.rotation.frequencies = {};
    const Attention unknown = attention(c.norm, c.maps());
    EXPECT_EQ(unknown.sharpest.upper, anywhere) << seed;
    EXPECT_EQ(unknown.sharpest.lower, 0.0);
    EXPECT_FALSE(unknown.sharpest_keys.has_value());
    EXPECT_TRUE(unknown.distances->curve.empty());
    Random random(seed);
    const auto angles = [&] {
      std::vector<double> result;
      for (std::size_t j = 0; j < kept.size(); ++j)
        result.push_back(2.0 * std::numbers::pi * random.uniform());
      return result;
    };
    for (int i = 0; i < 8; ++i)
      EXPECT_LE(searched_spread(c, angles(), angles(), random), anywhere * (1.0 + 1e-12)) << seed;
  }
}

TEST(RotaryAttention, BoundsAreTight) {
  double worst = 0.0;
  double total = 0.0, known = 0.0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RotaryCase c = random_rotary_case(seed);
    if (c.distances() < 12) c.context = 12;
    c.window = 0;
    const Attention a = c.bounds();
    EXPECT_TRUE(a.distances->enumerated) << seed;
    if (a.queries_fill == 0.0 || a.keys_fill == 0.0) continue;
    ++known;
    worst = std::max(worst, a.sharpest.upper / a.sharpest.lower);
    total += a.sharpest.upper / a.sharpest.lower;
  }
  EXPECT_GT(known, 50.0);
  EXPECT_LT(worst, 1.6);
  EXPECT_LT(total / known, 1.1);
}

TEST(RotaryAttention, RowsAttainTheBounds) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    RotaryCase c = random_rotary_case(seed);
    const Attention a = c.bounds();
    ASSERT_EQ(a.sharpest_keys.has_value(), a.queries_fill > 0.0 && a.keys_fill > 0.0) << seed;
    if (!a.sharpest_keys) continue;
    const KeyPair& keys = *a.sharpest_keys;
    EXPECT_NE(keys.high_distance, keys.low_distance);
    EXPECT_GE(std::min(keys.high_distance, keys.low_distance), 1u)
        << "distance 0 is the query's own position";
    EXPECT_LT(std::max(keys.high_distance, keys.low_distance), c.distances());
    for (const std::vector<double>* row :
         {&a.sharpest.row, &keys.high_row, &keys.low_row, &a.most_uniform.row}) {
      EXPECT_LE(c.outside(*row), 1e-12) << seed;
    }
    const auto row = [](const std::vector<double>& values) -> VectorXd {
      return Eigen::Map<const VectorXd>(values.data(), static_cast<Index>(values.size()));
    };
    const VectorXd q = c.query_of(row(a.sharpest.row));
    const double spread = c.score(q, c.key_of(row(keys.high_row)), c.angles_at(keys.high_distance)) -
                          c.score(q, c.key_of(row(keys.low_row)), c.angles_at(keys.low_distance));
    EXPECT_NEAR(spread, a.sharpest.lower, (c.has_own_norms ? 1e-6 : 1e-11) * a.sharpest.upper) << seed;
  }
}

/// The largest spread of a query over all distances, with the best keys in closed form.
double widest(const RotaryCase& c, const VectorXd& q, std::size_t first) {
  double high = -INFINITY, low = INFINITY;
  const MatrixXd weight =
      Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
          c.key.data(), static_cast<Index>(c.dim), static_cast<Index>(c.norm.width));
  for (std::size_t t = first; t < c.distances(); ++t) {
    std::vector<double> back = c.angles_at(t);
    for (double& angle : back) angle = -angle;
    const VectorXd turned = c.maps().scale * c.turned(q, back);
    VectorXd pull = weight.transpose() * turned;
    for (std::size_t j = 0; j < c.norm.width; ++j)
      pull[static_cast<Index>(j)] *= c.norm.radius() * c.norm.gain_at(j);
    if (c.norm.centers()) pull.array() -= pull.mean();
    double middle = 0.0;
    const VectorXd constant = c.key_of(c.row(VectorXd::Zero(static_cast<Index>(c.norm.width))));
    middle = turned.dot(constant);
    high = std::max(high, middle + pull.norm());
    low = std::min(low, middle - pull.norm());
  }
  return high - low;
}

TEST(RotaryAttention, EveryQueryHasASpreadOfTheLowerBound) {
  std::size_t positive = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    RotaryCase c = random_rotary_case(seed);
    if (c.has_own_norms) continue;
    const Attention a = c.bounds();
    const VectorXd best = Eigen::Map<const VectorXd>(a.most_uniform.query.data(), static_cast<Index>(c.dim));
    const double attained = widest(c, best, 0);
    EXPECT_LE(attained, a.most_uniform.upper * (1.0 + 1e-12) + 1e-12) << seed;
    if (a.most_uniform.lower == 0.0) continue;
    ++positive;
    Random random(seed);
    VectorXd u = c.point(random);
    double least = INFINITY;
    double step = 1.0;
    for (int i = 0; i < 200; ++i) {
      const VectorXd next = u + step * c.point(random);
      const double found = widest(c, c.query_of(c.row(next)), 1);
      if (found < least) {
        least = found;
        u = next;
      } else {
        step *= 0.97;
      }
    }
    EXPECT_GE(least, a.most_uniform.lower * (1.0 - 1e-12)) << seed;
    double shares = 0.0;
    for (const UnavoidableContext& context : a.uniform_proof) shares += context.share;
    EXPECT_NEAR(shares, 1.0, 1e-12);
  }
  EXPECT_GT(positive, 8u);
}

TEST(RotaryAttention, SlowPairsTightenBoundsWithoutEnumeration) {
  for (std::uint64_t seed = 1; seed < 40; seed += 3) {
    RotaryCase c = random_rotary_case(seed);
    c.window = 0;
    for (double& frequency : c.frequencies) frequency *= 1e-3;
    const Attention slow = c.bounds({.operations = 0.0});
    EXPECT_FALSE(slow.distances->enumerated);
    ASSERT_TRUE(slow.distances->in_context.has_value());
    // Pairs hardly rotate, so the bound is close to that at distance 0.
    EXPECT_LE(slow.sharpest.upper, 1.6 * slow.distances->sharpest_at_zero.upper) << seed;
    EXPECT_GE(slow.sharpest.upper, c.bounds().sharpest.lower) << seed;
    Random random(seed);
    for (int i = 0; i < 4; ++i) {
      const auto high = c.angles_at(random.below(c.context));
      EXPECT_LE(searched_spread(c, high, c.angles_at(random.below(c.context)), random), slow.sharpest.upper)
          << seed;
    }
  }
}

}  // namespace
}  // namespace normscope::heads
