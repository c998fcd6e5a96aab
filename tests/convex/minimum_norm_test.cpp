#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/convex/minimum_norm.hpp>
#include <normscope/core/random.hpp>

namespace normscope::convex {
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

TEST(MinimumNorm, HullAroundTheOriginGivesZero) {
  const PointList points{{1, 0, 0}, {-1, 1, 0}, {-1, -1, 1}, {0, 0, -1}, {9, 9, 9}};
  const MinimumNorm result = minimum_norm_point(hull_of(points));
  for (const double value : result.point) EXPECT_NEAR(value, 0.0, 1e-15);
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
}  // namespace normscope::convex
