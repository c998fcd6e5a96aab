#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <normscope/core/error.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/random.hpp>
#include <normscope/heads/attention.hpp>
#include <normscope/norm/norm.hpp>

#include "rotary_case.hpp"
#include "support/instruction_sets.hpp"

namespace normscope::heads {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

TEST(RotaryAttention, UnboundedContextsHaveTheBoundOfAnyDistance) {
  RotaryCase c = random_rotary_case(10);
  c.context = c.window = 0;
  const Attention a = c.bounds();
  EXPECT_EQ(a.distances->within, 0u);
  EXPECT_FALSE(a.distances->enumerated);
  EXPECT_EQ(a.sharpest.upper, a.distances->sharpest_anywhere);
  EXPECT_GT(a.sharpest.lower, 0.9 * a.sharpest.upper) << "over thousands of positions all pairs rotate";
}

TEST(RotaryAttention, PairsOfFrequencyZeroDoNotRotate) {
  RotaryCase c = random_rotary_case(13);
  c.has_own_norms = false;
  c.key_bias.clear();
  c.rotation = {.dims = c.dim, .interleaved = false, .frequencies = {}, .score_factor = 1.5};
  c.frequencies.assign(c.dim / 2, 0.0);
  const Attention still = c.bounds();
  EXPECT_FALSE(still.distances.has_value());
  HeadMaps plain = c.maps();
  plain.rotation = nullptr;
  plain.scale *= 1.5;
  const Attention expected = attention(c.norm, plain);
  EXPECT_NEAR(still.sharpest.upper, expected.sharpest.upper, 1e-11 * expected.sharpest.upper);
  EXPECT_NEAR(still.most_uniform.upper, expected.most_uniform.upper, 1e-11 * expected.sharpest.upper);
}

TEST(RotaryAttention, WithoutTwoEarlierKeysTheLowerBoundIsZero) {
  RotaryCase c = random_rotary_case(16);
  c.window = 2;
  const Attention a = c.bounds();
  EXPECT_EQ(a.sharpest.lower, 0.0);
  EXPECT_GT(a.sharpest.upper, 0.0);
  EXPECT_EQ(a.distances->within, 2u);
  EXPECT_LE(a.most_uniform.upper, a.sharpest.upper);
}

TEST(RotaryAttention, WithoutScalingAZeroQueryIsUniform) {
  RotaryCase c = random_rotary_case(3);
  c.has_own_norms = false;
  EXPECT_TRUE(c.bounds().uniform_without_scaling) << "its query map has full rank";
  // A query that is only the bias is not zero.
  std::fill(c.query.begin(), c.query.end(), 0.0);
  EXPECT_FALSE(c.bounds().uniform_without_scaling);
  std::fill(c.key.begin(), c.key.end(), 0.0);
  c.key_bias.clear();
  c.norm.bias.clear();
  EXPECT_TRUE(c.bounds().uniform_without_scaling) << "all keys are zero";
}

TEST(RotaryAttention, AnExampleByHand) {
  // Queries and keys are the rows themselves, of length √2, and one pair: at any distance keys can be the
  // query rotated back and its negative, so the spread is 2 |q| |k| s.
  RotaryCase c;
  c.dim = 2;
  c.norm = {.kind = NormKind::rms, .width = 2, .eps = 0.0};
  c.query = c.key = {1.0, 0.0, 0.0, 1.0};
  c.rotation.dims = 2;
  c.frequencies = {1.0};
  c.context = 9;
  const Attention a = c.bounds();
  const double expected = 2.0 * 2.0 / std::sqrt(2.0);
  EXPECT_NEAR(a.sharpest.lower, expected, 1e-12);
  EXPECT_NEAR(a.sharpest.upper, expected, 2e-3 * expected);
  EXPECT_NEAR(a.distances->sharpest_anywhere, expected, 1e-9);
  // Equal keys differ in scores only by their rotation.
  c.key = {0.0, 0.0, 0.0, 0.0};
  c.key_bias = {1.0, 0.0};
  const Attention b = c.bounds();
  EXPECT_NEAR(b.distances->sharpest_at_zero.upper, 0.0, 1e-12);
  double most = 0.0;
  for (int i = 1; i < 9; ++i) {
    for (int j = 1; j < i; ++j) most = std::max(most, 2.0 * std::abs(std::sin(0.5 * (i - j))));
  }
  EXPECT_NEAR(b.sharpest.lower, most, 1e-12);
  EXPECT_NEAR(b.sharpest.upper, 2.0, 1e-2);
}

TEST(RotaryAttention, InstructionSetsChangeTheBoundsByRoundingAlone) {
  for (const std::uint64_t seed : {2U, 3U, 5U, 12U}) {
    RotaryCase c = random_rotary_case(seed);
    c.window = 0;
    c.context = 53;
    std::vector<double> bounds;
    test::for_each_instruction_set([&] {
      const double bound = c.bounds().distances->by_distance->spread;
      bounds.push_back(bound);
      EXPECT_NEAR(bound, bounds.front(), 1e-12 * bound) << seed;
    });
  }
}

/// b² P − G_t for an odd number of coordinates, two of which do not rotate, against a dense eigensolver.
TEST(RotaryAttention, OddWidthsAreBounded) {
  RotaryCase c = random_rotary_case(12);
  c.dim = 5;
  Random random(4);
  c.query.clear();
  c.key.clear();
  for (std::size_t i = 0; i < c.dim * c.norm.width; ++i) {
    c.query.push_back(random.normal());
    c.key.push_back(random.normal());
  }
  c.query_bias = c.key_bias = {};
  c.rotation.dims = 4;
  c.frequencies = {1.0, 0.03};
  c.context = 31;
  const Attention a = c.bounds();
  ASSERT_TRUE(a.distances->by_distance.has_value());
  const auto matrix = [&](const std::vector<double>& weight, double factor) {
    MatrixXd map = Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
        weight.data(), static_cast<Index>(c.dim), static_cast<Index>(c.norm.width));
    for (std::size_t j = 0; j < c.norm.width; ++j) {
      map.col(static_cast<Index>(j)) *= factor * c.norm.radius() * c.norm.gain_at(j);
    }
    if (c.norm.centers()) map.colwise() -= map.rowwise().mean().eval();
    return map;
  };
  const MatrixXd queries = matrix(c.query, 1.0);
  const MatrixXd keys = matrix(c.key, c.maps().scale);
  double most = 0.0;
  for (std::size_t t = 0; t < c.context; ++t) {
    MatrixXd turned = keys;
    for (Index i = 0; i < keys.cols(); ++i) turned.col(i) = c.turned(keys.col(i), c.angles_at(t));
    const MatrixXd scores = turned.transpose() * queries;
    const auto rows = static_cast<std::size_t>(scores.rows());
    const auto columns = static_cast<std::size_t>(scores.cols());
    most = std::max(most, singular_value_decomposition({scores.data(), rows, columns, 1, rows}).values[0]);
  }
  EXPECT_GE(a.distances->by_distance->reach, most);
  EXPECT_LE(a.distances->by_distance->reach, 1.005 * most);
}

TEST(RotaryAttention, RejectsInvalidRotations) {
  RotaryCase c = random_rotary_case(2);
  c.rotation.dims = c.dim + 2;
  EXPECT_THROW((void)c.bounds(), Error);
  c.rotation.dims = 1;
  EXPECT_THROW((void)c.bounds(), Error);
  c = random_rotary_case(2);
  c.frequencies[0] = NAN;
  EXPECT_THROW((void)c.bounds(), Error);
  c = random_rotary_case(2);
  c.frequencies.push_back(1.0);
  EXPECT_THROW((void)c.bounds(), Error);
}

void expect_ordered(const Attention& a) {
  EXPECT_LE(a.sharpest.lower, a.sharpest.upper);
  EXPECT_LE(a.most_uniform.lower, a.most_uniform.upper);
  EXPECT_LE(a.most_uniform.upper, a.sharpest.upper * (1.0 + 1e-12));
}

TEST(RotaryAttention, SomePairsOfFrequencyZeroCountAsStill) {
  RotaryCase c = random_rotary_case(13);
  c.has_own_norms = false;
  c.dim = 4;
  Random random(5);
  c.query.resize(c.dim * c.norm.width);
  c.key.resize(c.dim * c.norm.width);
  for (double& value : c.query) value = random.normal();
  for (double& value : c.key) value = random.normal();
  c.query_bias = {0.3, -0.4, 0.5, 0.6};
  c.key_bias = {};
  c.rotation = {.dims = 4};
  c.frequencies = {0.7, 0.0};
  c.context = 12;
  const Attention part = c.bounds();
  ASSERT_TRUE(part.distances.has_value());
  expect_ordered(part);
  // That head with the pair outside the rotation: coordinates (0, 2) turn, (1, 3) do not.
  RotaryCase other = c;
  const auto row = [&](std::vector<double>& to, const std::vector<double>& from, std::size_t i,
                       std::size_t j) {
    std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(j * c.norm.width), c.norm.width,
                to.begin() + static_cast<std::ptrdiff_t>(i * c.norm.width));
  };
  const std::size_t order[] = {0, 2, 1, 3};
  for (std::size_t i = 0; i < 4; ++i) {
    row(other.query, c.query, i, order[i]);
    row(other.key, c.key, i, order[i]);
    other.query_bias[i] = c.query_bias[order[i]];
  }
  other.rotation = {.dims = 2};
  other.frequencies = {0.7};
  const Attention expected = other.bounds();
  EXPECT_NEAR(part.sharpest.upper, expected.sharpest.upper, 1e-6 * expected.sharpest.upper);
  EXPECT_NEAR(part.sharpest.lower, expected.sharpest.lower, 1e-6 * expected.sharpest.upper);
  // A rotation of no coordinates is none.
  c.rotation = {.dims = 0};
  c.frequencies = {};
  HeadMaps plain = c.maps();
  const Attention none = c.bounds();
  plain.rotation = nullptr;
  EXPECT_FALSE(none.distances.has_value());
  EXPECT_EQ(none.sharpest.upper, attention(c.norm, plain).sharpest.upper);
}

TEST(RotaryAttention, BoundsAreOrderedForMapsThatMissCoordinates) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    RotaryCase c = random_rotary_case(seed);
    const std::size_t half = c.dim / 2 * c.norm.width;
    switch (seed % 4) {
      // No query depends on the row; no coordinate that stays has a query; no key turns; nothing at all.
      case 0: std::fill(c.query.begin(), c.query.end(), 0.0); break;
      case 1:
        c.rotation.dims = 2;
        c.frequencies.assign(1, 0.3);
        c.norm.bias.clear();
        c.query_bias.clear();
        if (c.dim > 2) {
          std::fill(c.query.begin() + static_cast<std::ptrdiff_t>(2 * c.norm.width), c.query.end(), 0.0);
        }
        break;
      case 2: std::fill(c.key.begin(), c.key.begin() + static_cast<std::ptrdiff_t>(half), 0.0); break;
      case 3:
        std::fill(c.key.begin(), c.key.end(), 0.0);
        c.key_bias.clear();
        break;
    }
    c.has_own_norms = false;
    for (const std::size_t context : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{9}}) {
      c.context = context;
      c.window = 0;
      expect_ordered(c.bounds());
      expect_ordered(c.bounds({.operations = 0.0}));
    }
  }
}

TEST(RotaryAttention, OneSideMayHaveItsOwnNorm) {
  for (const bool on_queries : {true, false}) {
    for (const double cap : {0.0, 5.0}) {
      for (const std::uint64_t seed : {8, 17, 26}) {
        RotaryCase c = random_rotary_case(seed);
        c.soft_cap = cap;
        c.query_norm.eps = c.key_norm.eps = 0.01;
        c.rotation.frequencies = c.frequencies;
        HeadMaps maps = c.maps();
        (on_queries ? maps.key_norm : maps.query_norm) = nullptr;
        const Attention a = attention(c.norm, maps);
        expect_ordered(a);
        EXPECT_EQ(a.queries_fill == 1.0, !on_queries);
        EXPECT_EQ(a.keys_fill == 1.0, on_queries);
        if (cap > 0.0) {
          EXPECT_LE(a.sharpest.upper, 2.0 * cap * (1.0 + 1e-14));
        }
      }
    }
  }
}

TEST(RotaryAttention, SoftCapBoundsScoresAtDistanceZeroWithoutProjection) {
  for (const bool interleaved : {true, false}) {
    for (const std::uint64_t seed : {0, 3, 6, 9}) {
      RotaryCase c = random_rotary_case(seed);
      ASSERT_TRUE(c.norm.centers());
      c.has_own_norms = false;
      c.rotation.interleaved = interleaved;
      const Attention raw = c.bounds();
      c.soft_cap = 0.2 * raw.sharpest.upper;
      const Attention a = c.bounds();
      expect_ordered(a);
      ASSERT_TRUE(a.distances->sharpest_at_zero_without_projection.has_value());
      const Spread& capped = *a.distances->sharpest_at_zero_without_projection;
      const double before = raw.distances->sharpest_at_zero_without_projection->upper;
      EXPECT_NEAR(capped.upper, 2.0 * c.soft_cap * std::tanh(0.5 * before / c.soft_cap), 1e-12 * c.soft_cap);
      // The stored context attains the lower bound after the cap.
      ASSERT_TRUE(a.sharpest_keys.has_value());
      const auto vector = [](const std::vector<double>& values) {
        return VectorXd(Eigen::Map<const VectorXd>(values.data(), static_cast<Index>(values.size())));
      };
      const VectorXd query = c.query_of(vector(a.sharpest.row));
      const double high = c.score(query, c.key_of(vector(a.sharpest_keys->high_row)),
                                  c.angles_at(a.sharpest_keys->high_distance));
      const double low = c.score(query, c.key_of(vector(a.sharpest_keys->low_row)),
                                 c.angles_at(a.sharpest_keys->low_distance));
      EXPECT_GE(high - low, a.sharpest.lower - 1e-9 * c.soft_cap) << seed;
    }
  }
}

}  // namespace
}  // namespace normscope::heads
