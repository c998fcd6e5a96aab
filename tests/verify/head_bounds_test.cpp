#include "../../src/verify/heads.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace normscope::verify {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A head of two coordinates that form one pair; a norm whose outputs are the disk of radius 1.
AttentionHead head_of(std::vector<double> query, std::vector<double> key, double frequency) {
  AttentionHead head;
  head.norm = {.kind = NormKind::spherical, .width = 2};
  head.head.head_dim = 2;
  head.head.scale = 1.0;
  head.query.weight = std::move(query);
  head.key.weight = std::move(key);
  head.head.rotary = models::Rotary{.dims = 2, .frequencies = {frequency}};
  return head;
}

std::vector<double> on_circle(int step) {
  const double angle = 2.0 * std::numbers::pi * step / 90.0;
  return {std::cos(angle) * (1.0 - 1e-15), std::sin(angle) * (1.0 - 1e-15)};
}

/// The largest difference of two keys' scores at distances below `distances` under a query of the circle, or
/// under that one.
double sampled_spread(const HeadScores& scores, std::size_t distances, const Column* only = nullptr) {
  double widest = 0.0;
  for (int i = 0; i < 90; ++i) {
    const Column query = only != nullptr ? *only : scores.query.at(on_circle(i));
    double high = -infinity;
    double low = infinity;
    for (int j = 0; j < 90; ++j) {
      for (std::size_t t = 0; t < distances; ++t) {
        const double score = scores.score(query, on_circle(j), t).high;
        high = std::max(high, score);
        low = std::min(low, score);
      }
    }
    widest = std::max(widest, high - low);
    if (only != nullptr) break;
  }
  return widest;
}

/// Both coordinates together, at distances below 5, where they turn by 0.4.
PairWeights slow_proof() {
  PairWeights proof;
  proof.distances = 5;
  proof.weights = {1.0};
  proof.turns = {2.0 * std::sin(0.1) + 1e-9};
  proof.still = {0, 1};
  proof.factor = {1, 0, 0, 1};
  proof.query_multiplier = proof.key_multiplier = 1.0 + 2.0 * std::sin(0.1) + 1e-8;
  return proof;
}

TEST(SpreadByWeights, PairsThatHardlyTurnAreBoundedAtTheirMiddle) {
  const HeadScores scores = scores_of(head_of({1, 0, 0, 1}, {1, 0, 0, 1}, 0.1), true);
  const double bound = spread_by_weights(scores, slow_proof());
  // |q'|² = |k'|² = 1 + 2 sin(0.1), and twice their product.
  EXPECT_NEAR(bound, 2.0 * (1.0 + 2.0 * std::sin(0.1)), 1e-6);
  EXPECT_GE(bound, sampled_spread(scores, 5));
  PairWeights swapped = slow_proof();
  swapped.factor = {0, 1, 1, 0};
  EXPECT_NEAR(spread_by_weights(scores, swapped), bound, 1e-9);
}

// At distance 1 a quarter of a turn takes the keys onto the queries. F is a good one for distance 0 alone, so
// a bound without the middle angle would be 1.53, below the spread.
TEST(SpreadByWeights, AQuarterOfATurnIsSeen) {
  const double e = 1e-3;
  const HeadScores scores = scores_of(head_of({1, 0, 0, e}, {e, 0, 0, 1}, 0.5 * std::numbers::pi), true);
  PairWeights proof = slow_proof();
  proof.distances = 2;
  proof.turns = {2.0 * std::sin(std::numbers::pi / 8.0) + 1e-9};
  proof.factor = {std::sqrt(e), 0, 0, 1.0 / std::sqrt(e)};
  const double spread = sampled_spread(scores, 2);
  EXPECT_GT(spread, 1.99);
  const double bound = spread_by_weights(scores, proof);
  EXPECT_GE(bound, spread);
  EXPECT_LT(bound, infinity);
}

TEST(SpreadByWeights, WhatProvesNothingIsInfinite) {
  const HeadScores scores = scores_of(head_of({1, 0, 0, 1}, {1, 0, 0, 1}, 0.1), true);
  const auto bound = [&](const auto& change) {
    PairWeights proof = slow_proof();
    change(proof);
    return spread_by_weights(scores, proof);
  };
  EXPECT_LT(bound([](PairWeights&) {}), infinity);
  EXPECT_EQ(bound([](PairWeights& p) { p.turns = {2.0 * std::sin(0.1) - 1e-9}; }), infinity);
  EXPECT_EQ(bound([](PairWeights& p) { p.turns = {std::nan("")}; }), infinity);
  EXPECT_EQ(bound([](PairWeights& p) { p.weights = {0.0}; }), infinity);
  EXPECT_EQ(bound([](PairWeights& p) { p.weights = {std::nan("")}; }), infinity);
  EXPECT_EQ(bound([](PairWeights& p) { p.distances = 0; }), infinity);
  // One coordinate of a pair, or one twice.
  EXPECT_EQ(bound([](PairWeights& p) {
              p.still = {0};
              p.factor = {1};
            }),
            infinity);
  EXPECT_EQ(bound([](PairWeights& p) { p.still = {0, 0}; }), infinity);
  EXPECT_EQ(bound([](PairWeights& p) { p.factor = {1, 1, 1, 1}; }), infinity);
  // More than half a turn, though the remainder is said to be as large as it can be.
  EXPECT_EQ(bound([](PairWeights& p) {
              p.distances = 33;
              p.turns = {2.0};
            }),
            infinity);
  EXPECT_LT(bound([](PairWeights& p) {
              p.distances = 32;
              p.turns = {2.0};
            }),
            infinity);
  HeadScores unknown = scores;
  unknown.frequencies.clear();
  EXPECT_EQ(spread_by_weights(unknown, slow_proof()), infinity);
}

TEST(SpreadByWeights, PairsThatTurnAreBoundedByTheirLengths) {
  const HeadScores scores = scores_of(head_of({1, 0, 0, 1}, {1, 0, 0, 1}, 0.1), true);
  PairWeights proof = slow_proof();
  proof.distances = 0;
  proof.still.clear();
  proof.factor.clear();
  proof.turns = {1.0};
  proof.query_multiplier = proof.key_multiplier = 1.0;
  EXPECT_NEAR(spread_by_weights(scores, proof), 2.0, 1e-6);
  proof.turns = {1.0 - 1e-15};
  EXPECT_EQ(spread_by_weights(scores, proof), infinity);
}

// Coordinates 2 and 3 of four do not turn, so they have to be among those of F.
TEST(SpreadByWeights, CoordinatesThatDoNotTurnHaveToStand) {
  AttentionHead head = head_of({}, {}, 0.1);
  head.norm.width = 4;
  head.head.head_dim = 4;
  for (int i = 0; i < 16; ++i) head.query.weight.push_back(i % 5 == 0 ? 1.0 : 0.0);
  head.key.weight = head.query.weight;
  const HeadScores scores = scores_of(head, true);
  PairWeights proof = slow_proof();
  proof.distances = 0;
  proof.turns = {1.0};
  proof.still = {2, 3};
  proof.query_multiplier = proof.key_multiplier = 1.0;
  EXPECT_NEAR(spread_by_weights(scores, proof), 2.0, 1e-6);
  proof.still = {2};
  proof.factor = {1};
  EXPECT_EQ(spread_by_weights(scores, proof), infinity);
}

DistanceBounds distance_bounds(double reach) { return {.distances = 5, .reach = reach, .centre = {0, 0}}; }

TEST(SpreadByDistance, EllipsoidsBoundTheSpread) {
  const HeadScores scores = scores_of(head_of({2, 0, 0, 1}, {1, 0.5, 0, 1}, 0.3), true);
  const double half = 0.5 * sampled_spread(scores, 5);
  EXPECT_EQ(spread_by_distance(scores, distance_bounds(half * 0.99)), infinity);
  const double bound = spread_by_distance(scores, distance_bounds(half * 1.01));
  EXPECT_NEAR(bound, 2.02 * half, 1e-9);
}

// With constants: squares of 0 leave one out, and the bound adds what it may do.
TEST(SpreadByDistance, ConstantsAreInOrAddedTo) {
  AttentionHead head = head_of({2, 0, 0, 1}, {1, 0.5, 0, 1}, 0.3);
  head.query.bias = {0.5, 0.25};
  head.key.bias = {0.25, -0.5};
  const HeadScores scores = scores_of(head, true);
  const HeadScores without = scores_of(head_of({2, 0, 0, 1}, {1, 0.5, 0, 1}, 0.3), true);
  const double spread = sampled_spread(scores, 5);
  const double reach = 0.505 * sampled_spread(without, 5);
  EXPECT_GT(spread, 2.0 * reach);  // the constants do widen it
  EXPECT_GE(spread_by_distance(scores, distance_bounds(reach)), spread);
  // The constants' lengths are √0.3125 each, those of the maps √5 and 1.5.
  const double c = std::sqrt(0.3125);
  EXPECT_NEAR(spread_by_distance(scores, distance_bounds(reach)),
              2.0 * (reach + c * (1.5 + c) + std::sqrt(5.0) * c), 1e-9);
  for (const double reach_of_all : {2.0, 4.0, 6.0, 9.0, 14.0}) {
    DistanceBounds both = distance_bounds(reach_of_all);
    both.query_square = 0.3;
    both.key_square = 0.3;
    const double bound = spread_by_distance(scores, both);
    EXPECT_GE(bound, spread) << reach_of_all;
    EXPECT_TRUE(bound == infinity || std::abs(bound - 2.0 * reach_of_all) < 1e-9);
    EXPECT_EQ(bound == infinity, reach_of_all < 3.0) << reach_of_all;
  }
}

// L^T G L has the diagonal 1 and 0.6 beside it: its largest eigenvalue is 1.6.
TEST(SpreadByDistance, WhatIsBesideTheDiagonalCounts) {
  const HeadScores scores = scores_of(head_of({1, 0, 0, 1}, {1, 0, 0.6, 0.8}, 0.1), true);
  DistanceBounds bounds = distance_bounds(std::sqrt(1.5));
  bounds.distances = 1;
  EXPECT_EQ(spread_by_distance(scores, bounds), infinity);
  bounds.reach = std::sqrt(1.61);
  EXPECT_NEAR(spread_by_distance(scores, bounds), 2.0 * std::sqrt(1.61), 1e-9);
}

TEST(SpreadByDistance, LargeConstantsAreNotForgotten) {
  for (const bool of_query : {true, false}) {
    AttentionHead head = head_of({2, 0, 0, 1}, {1, 0.5, 0, 1}, 0.3);
    (of_query ? head.query.bias : head.key.bias) = {5, 2.5};
    const HeadScores scores = scores_of(head, true);
    const double spread = sampled_spread(scores, 5);
    DistanceBounds bounds = distance_bounds(0.49 * spread);
    (of_query ? bounds.query_square : bounds.key_square) = 0.3;
    EXPECT_EQ(spread_by_distance(scores, bounds), infinity) << of_query;
    bounds.reach = 3.0 * spread;
    EXPECT_LT(spread_by_distance(scores, bounds), infinity) << of_query;
  }
}

TEST(SpreadByDistance, WhatProvesNothingIsInfinite) {
  const HeadScores scores = scores_of(head_of({1, 0, 0, 1}, {1, 0, 0, 1}, 0.1), true);
  const auto bound = [&](const auto& change) {
    DistanceBounds bounds = distance_bounds(1.01);
    change(bounds);
    return spread_by_distance(scores, bounds);
  };
  EXPECT_LT(bound([](DistanceBounds&) {}), infinity);
  EXPECT_EQ(bound([](DistanceBounds& b) { b.distances = 0; }), infinity);
  EXPECT_EQ(bound([](DistanceBounds& b) { b.distances = std::size_t{1} << 40; }), infinity);
  EXPECT_EQ(bound([](DistanceBounds& b) { b.reach = -1.01; }), infinity);
  EXPECT_EQ(bound([](DistanceBounds& b) { b.reach = 0.99; }), infinity);
  EXPECT_EQ(bound([](DistanceBounds& b) { b.query_square = -0.01; }), infinity);
  EXPECT_EQ(bound([](DistanceBounds& b) { b.key_square = -0.01; }), infinity);
  HeadScores unknown = scores;
  unknown.frequencies.clear();
  EXPECT_EQ(spread_by_distance(unknown, distance_bounds(1.01)), infinity);
}

TEST(WidestContext, BoundsTheSpreadOfOneQuery) {
  AttentionHead head = head_of({2, 0, 0, 1}, {1, 0.5, 0, 1}, 0.3);
  head.key.bias = {0.25, -0.5};
  const HeadScores scores = scores_of(head, true);
  const Column query = scores.query.at(on_circle(7));
  const double sampled = sampled_spread(scores, 5, &query);
  const double bound = widest_context(scores, query, 5);
  EXPECT_GE(bound, sampled);
  EXPECT_LE(bound, sampled * 1.01);
  EXPECT_EQ(widest_context(scores, query, 0), infinity);
  EXPECT_EQ(widest_context(scores, query, (std::size_t{1} << 16) + 1), infinity);
  EXPECT_LT(widest_context(scores, query, std::size_t{1} << 16), infinity);
  HeadScores unknown = scores;
  unknown.frequencies.clear();
  EXPECT_EQ(widest_context(unknown, query, 5), infinity);
}

TEST(UnavoidableSpread, IsThatOfTheConstantQuery) {
  AttentionHead head = head_of({0.1, 0, 0, 0.1}, {1, 0, 0, 1}, 0.1);
  head.query.bias = {1, 0};
  const HeadScores scores = scores_of(head, true);
  const Context context{.share = 2.0, .high = {3, 0}, .low = {-0.5, 0}};
  // Keys (1, 0) and (−1, 0): 2 of the constant, less 0.1 of 2.
  EXPECT_NEAR(unavoidable_spread(scores, {context}, 1.0), 1.8, 1e-9);
  EXPECT_LE(unavoidable_spread(scores, {context}, 1.0), 1.8);
  EXPECT_NEAR(unavoidable_spread(scores, {context}, 0.5), 0.9, 1e-9);
  // Turned by 0.1 and 0.2.
  Context apart = context;
  apart.high_distance = 1;
  apart.low_distance = 2;
  const double pull = std::cos(0.1) + std::cos(0.2);
  const double across = std::sin(0.1) + std::sin(0.2);
  EXPECT_NEAR(unavoidable_spread(scores, {apart}, 1.0), pull - 0.1 * std::hypot(pull, across), 1e-9);
  // A constant of the keys, turned with them; at one distance it cancels.
  AttentionHead biased = head;
  biased.key.bias = {0, 4};
  const double more = pull + 4.0 * (std::sin(0.1) - std::sin(0.2));
  const double beside = across + 4.0 * (std::cos(0.2) - std::cos(0.1));
  EXPECT_NEAR(unavoidable_spread(scores_of(biased, true), {apart}, 1.0),
              more - 0.1 * std::hypot(more, beside), 1e-9);
  EXPECT_NEAR(unavoidable_spread(scores_of(biased, true), {context}, 1.0), 1.8, 1e-9);
  Context none = context;
  none.high = {0, 0};
  EXPECT_NEAR(unavoidable_spread(scores, {none}, 1.0), 0.9, 1e-9);
  EXPECT_EQ(unavoidable_spread(scores, {}, 1.0), -infinity);
  Context negative = context;
  negative.share = -1.0;
  EXPECT_EQ(unavoidable_spread(scores, {negative}, 1.0), -infinity);
  EXPECT_EQ(unavoidable_spread(scores, {context, negative}, 1.0), -infinity);
  negative.share = 0.0;
  EXPECT_EQ(unavoidable_spread(scores, {negative}, 1.0), -infinity);
  HeadScores unknown = scores;
  unknown.frequencies.clear();
  EXPECT_NEAR(unavoidable_spread(unknown, {context}, 1.0), 1.8, 1e-9);
  EXPECT_EQ(unavoidable_spread(unknown, {apart}, 1.0), -infinity);
}

TEST(SpreadAtZero, AQueryThatIsConstantHasOne) {
  AttentionHead head = head_of({0, 0, 0, 0}, {1, 0, 0, 1}, 0.1);
  head.query.bias = {1, 0};
  const double bound = spread_at_zero_at_most(scores_of(head, true), 1.0);
  EXPECT_GE(bound, 2.0);
  EXPECT_LE(bound, 2.0 + 1e-6);
}

TEST(SpreadAtZero, OrthogonalMapsHaveNone) {
  const HeadScores scores = scores_of(head_of({1, 0.3, 0, 0}, {0, 0, 0.7, 1}, 0.1), true);
  EXPECT_LE(spread_at_zero_at_most(scores, 0.0), 1e-26);
}

TEST(LargestLength, IsBoundedToTheLastDigitsWhereTheConstantIsLarge) {
  Matrix identity(2, 2);
  identity.at(0, 0) = identity.at(1, 1) = 1.0;
  const auto expect = [&](double across, double constant) {
    const HeadScores scores = scores_of(head_of({1, 0, 0, across}, {1, 0, 0, 1}, 0.1), true);
    Column offset(2);
    offset[0] = constant;
    // With c >= across² − 1, |(c + u_1, across u_2)| is largest at u = (1, 0).
    const double length = 1.0 + constant;
    const double bound = largest_length(identity, scores.query, offset, length);
    EXPECT_GE(bound, length * (1.0 - 4.0 * unit)) << across << " " << constant;
    EXPECT_LE(bound, length * (1.0 + 64.0 * unit)) << across << " " << constant;
  };
  for (const double constant : {0.0, 1.0, 1e6, 1e12, 1e15, 1e18, 1e25}) expect(1.0, constant);
  for (const double constant : {1e12, 1e15, 1e17}) expect(1e4, constant);
}

TEST(HeadSide, FillsABallOfItsSmallestSingularValue) {
  HeadSide side;
  side.input = Matrix(2, 2);
  side.input.at(0, 0) = 1.0;
  side.input.at(1, 1) = 2.0;
  side.input_constant = Column(2);
  EXPECT_TRUE(side.fills(0.999));
  EXPECT_FALSE(side.fills(1.001));
  side.input_constant[0] = 0.5;
  EXPECT_TRUE(side.fills(0.499));
  EXPECT_FALSE(side.fills(0.501));
  // Without its mean, and so without a direction, which a norm that subtracts the mean does not need.
  for (const std::size_t i : {0U, 1U}) {
    for (const std::size_t j : {0U, 1U}) side.input.at(i, j) = i == j ? 0.5 : -0.5;
  }
  side.input_constant = Column(2);
  EXPECT_FALSE(side.fills(0.999));
  side.own_centers = true;
  EXPECT_TRUE(side.fills(0.999));
  EXPECT_FALSE(side.fills(1.001));
}

TEST(HeadScores, ALayerNormSubtractsTheMean) {
  AttentionHead head = head_of({1, 0, 0, 1}, {1, 0, 0, 1}, 0.1);
  head.norm.kind = NormKind::layer;
  const HeadScores scores = scores_of(head, true);
  const std::vector<double> ones = {0.7, 0.7};
  const std::vector<double> apart = {0.7, -0.7};
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(scores.query.at(ones)[i].high, 0.0, 1e-12);
    EXPECT_NEAR(scores.query.at(apart)[i].high, (i == 0 ? 0.7 : -0.7) * std::sqrt(2.0), 1e-12);
  }
}

TEST(HeadScores, MapsWithoutProjectionHaveTheirOwnGram) {
  std::vector<double> weights;
  for (std::size_t i = 0; i < 3 * 5; ++i) weights.push_back(std::sin(static_cast<double>(i * i + 1)) + 0.5);
  for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
    AttentionHead head = head_of({1, 0, 0, 1}, {1, 0, 0, 1}, 0.1);
    head.head.head_dim = 3;
    head.norm = {.kind = kind, .width = 5};
    head.query.weight = head.key.weight = weights;
    head.query.bias = head.key.bias = {};
    const HeadScores projected = scores_of(head, true);
    const HeadScores from_it = scores_of(head, false, &projected);
    const HeadScores alone = scores_of(head, false);
    for (std::size_t i = 0; i < alone.query.gram.values.size(); ++i) {
      const double size = alone.query.map_size * alone.query.map_size;
      const DoubleDouble off = from_it.query.gram.values[i] - alone.query.gram.values[i];
      EXPECT_LE(std::abs(off.high), hidden(alone.query.terms) * size);
      EXPECT_LE(std::abs((from_it.key.gram.values[i] - alone.key.gram.values[i]).high),
                hidden(alone.key.terms) * alone.key.map_size * alone.key.map_size);
    }
  }
}

TEST(SpreadAtZero, IsBoundedForEveryMultiplier) {
  AttentionHead head = head_of({2, 0, 0, 1}, {1, 0.5, 0, 1}, 0.3);
  head.query.bias = {0.5, 0.25};
  const HeadScores scores = scores_of(head, true);
  const double spread = sampled_spread(scores, 1);
  for (const double multiplier : {0.0, 1.0, 20.0, 25.0, 30.0, 1e6}) {
    EXPECT_GE(spread_at_zero_at_most(scores, multiplier), spread * 0.999) << multiplier;
  }
  EXPECT_LE(spread_at_zero_at_most(scores, 25.0), spread * 1.1);
  const Enclosure one = spread_at_zero(scores, on_circle(3));
  const Column query = scores.query.at(on_circle(3));
  EXPECT_NEAR(one.high(), sampled_spread(scores, 1, &query), 0.01 * one.high());
  EXPECT_LT(one.high() - one.low(), 1e-12);
}

}  // namespace
}  // namespace normscope::verify
