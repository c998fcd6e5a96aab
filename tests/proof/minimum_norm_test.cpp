#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/proof/minimum_norm.hpp>

#include "mixed_sizes.hpp"

namespace normscope::proof {
namespace {

using PointList = std::vector<std::vector<double>>;

Hull hull_of(const PointList& points) {
  return {.dimension = points[0].size(), .least = [&points](std::span<const double> q, std::span<double> p) {
            std::size_t best = 0;
            double least = INFINITY;
            for (std::size_t i = 0; i < points.size(); ++i) {
              double score = 0.0;
              for (std::size_t k = 0; k < q.size(); ++k) score += q[k] * points[i][k];
              if (score < least) {
                least = score;
                best = i;
              }
            }
            std::copy(points[best].begin(), points[best].end(), p.begin());
            return std::uint64_t{best};
          }};
}

TEST(MinimumNorm, SegmentGivesThePerpendicularFoot) {
  const PointList points{{2, -1}, {2, 3}, {5, 0}};
  const MinimumNorm result = minimum_norm_point(hull_of(points));
  EXPECT_TRUE(result.converged);
  EXPECT_NEAR(result.point[0], 2.0, 1e-15);
  EXPECT_NEAR(result.point[1], 0.0, 1e-15);
  ASSERT_EQ(result.shares.size(), 2);
}

TEST(MinimumNorm, APointWithoutASquareDoesNotConverge) {
  const PointList points{{1, 0}, {-1e200, 0}};
  const MinimumNorm result = minimum_norm_point(hull_of(points));
  EXPECT_FALSE(result.converged);
  EXPECT_EQ(result.point, points[0]);
  ASSERT_EQ(result.shares.size(), 1U);
  EXPECT_EQ(result.shares[0].weight, 1.0);
}

TEST(MinimumNorm, HullAroundTheOriginGivesZero) {
  const PointList points{{1, 0, 0}, {-1, 1, 0}, {-1, -1, 1}, {0, 0, -1}, {9, 9, 9}};
  const MinimumNorm result = minimum_norm_point(hull_of(points));
  for (const double value : result.point) EXPECT_NEAR(value, 0.0, 1e-15);
}

TEST(MinimumNorm, IterationsAreLimited) {
  const PointList points{{3, 1}, {1, 3}, {-1, 4}};
  const MinimumNorm none = minimum_norm_point(hull_of(points), 1e-12, 0);
  EXPECT_FALSE(none.converged);
  EXPECT_EQ(none.iterations, 0U);
  EXPECT_EQ(none.point, points[0]);
  const MinimumNorm one = minimum_norm_point(hull_of(points), 1e-12, 1);
  EXPECT_FALSE(one.converged);
  EXPECT_EQ(one.iterations, 1U);
  EXPECT_TRUE(minimum_norm_point(hull_of(points)).converged);
}

TEST(MinimumNorm, LengthsWithoutASquareAreNotReached) {
  const PointList far{{1e200, 0}, {0, 1e200}};
  EXPECT_FALSE(minimum_norm_point(hull_of(far)).converged);
  EXPECT_TRUE(minimum_norm_point(hull_of(far)).shares.empty());
}

TEST(MinimumNorm, ADependentPointEndsTheSearch) {
  // The third point is nearer than the line through the others, by less than tells it from that line.
  const PointList line{{1, 0.02}, {-1, 0.02}, {0, 0.02 - 4e-14}};
  const MinimumNorm result = minimum_norm_point(hull_of(line));
  EXPECT_FALSE(result.converged);
  EXPECT_NEAR(result.point[1], 0.02, 1e-13);
  // Beside a point this long the first two are one.
  const PointList longer{{1, 1}, {1, -1}, {0.5, 1e14}};
  const MinimumNorm near = minimum_norm_point(hull_of(longer));
  EXPECT_FALSE(near.converged);
  EXPECT_NEAR(near.point[0], 1.0, 1e-13);
  EXPECT_NEAR(near.point[1], 0.0, 1e-13);
}

TEST(MinimumNorm, SharesArePositiveForPointsOfManySizes) {
  std::vector<std::uint64_t> seeds{15024, 62388};
  for (std::uint64_t seed = 0; seed < 500; ++seed) seeds.push_back(seed);
  for (const std::uint64_t seed : seeds) {
    const MixedRows rows = mixed_rows(seed);
    PointList points;
    for (std::size_t row = 0; row < rows.view().rows(); ++row) {
      points.emplace_back(rows.view().row(row).begin(), rows.view().row(row).end());
    }
    const MinimumNorm result = minimum_norm_point(hull_of(points));
    double total = 0.0;
    for (const PointWeight& share : result.shares) {
      EXPECT_GT(share.weight, 0.0) << seed;
      EXPECT_LT(share.id, points.size()) << seed;
      total += share.weight;
    }
    if (!result.shares.empty()) {
      EXPECT_NEAR(total, 1.0, 1e-12) << seed;
    }
    EXPECT_TRUE(!result.converged || !result.shares.empty()) << seed;
  }
}

RC_GTEST_PROP(MinimumNorm, NoPointOfTheHullIsNearer, (std::uint64_t seed)) {
  Random random(seed);
  const std::size_t dimension = 1 + random.below(10);
  PointList points(1 + random.below(40), std::vector<double>(dimension));
  for (std::vector<double>& point : points) {
    for (double& value : point) value = random.normal() + 1.0;
  }
  const MinimumNorm result = minimum_norm_point(hull_of(points));
  std::vector<double> rebuilt(dimension);
  double total = 0.0;
  for (const PointWeight& share : result.shares) {
    RC_ASSERT(share.weight > 0.0);
    total += share.weight;
    for (std::size_t k = 0; k < dimension; ++k) rebuilt[k] += share.weight * points[share.id][k];
  }
  RC_ASSERT(std::abs(total - 1.0) <= 1e-14);
  double square = 0.0;
  for (std::size_t k = 0; k < dimension; ++k) {
    RC_ASSERT(std::abs(rebuilt[k] - result.point[k]) <= 1e-13);
    square += rebuilt[k] * rebuilt[k];
  }
  // The optimality condition: xᵀp >= |x|² for every p.
  for (const std::vector<double>& point : points) {
    double score = 0.0;
    for (std::size_t k = 0; k < dimension; ++k) score += rebuilt[k] * point[k];
    RC_ASSERT(score >= square - 1e-11 * std::sqrt(square) - 1e-14);
  }
}

}  // namespace
}  // namespace normscope::proof
