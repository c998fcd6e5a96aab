#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/norm/norm.hpp>
#include <normscope/numeric/svd.hpp>
#include <normscope/selectability/attention.hpp>

#include "rotary_case.hpp"
#include "support/instruction_sets.hpp"

namespace normscope::selectability {
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

}  // namespace
}  // namespace normscope::selectability
