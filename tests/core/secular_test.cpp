#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include <normscope/core/linear_algebra.hpp>

#include "support/gains.hpp"

namespace normscope {
namespace {

struct Problem {
  std::vector<double> poles;
  std::vector<double> weights;
};

Problem problem(std::size_t width, const std::string& shape, std::uint64_t seed) {
  std::vector<double> squares = test::random_gain(width, shape, seed);
  for (double& g : squares) g *= g;
  std::sort(squares.begin(), squares.end());
  Problem result;
  for (const double square : squares) {
    if (result.poles.empty() || square > result.poles.back()) {
      result.poles.push_back(square);
      result.weights.push_back(0.0);
    }
    result.weights.back() += 1.0;
  }
  return result;
}

class SecularShapes : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  Problem given() const {
    const auto& [shape, width] = GetParam();
    return problem(width, shape, 100 + width);
  }
};

TEST_P(SecularShapes, RootsMatchTheReferenceToRoundingOfTheirOffset) {
  const Problem p = given();
  const auto roots = secular_roots(p.poles, p.weights);
  const auto expected = secular_roots_reference(p.poles, p.weights);
  ASSERT_EQ(roots.size(), expected.size());
  for (std::size_t k = 0; k < roots.size(); ++k) {
    const auto from_left = [&](const SecularRoot& root) {
      return (p.poles[root.origin] - p.poles[k]) + root.offset;
    };
    const double gap = p.poles[k + 1] - p.poles[k];
    EXPECT_NEAR(from_left(roots[k]) / gap, from_left(expected[k]) / gap, 1e-13) << "gap " << k;
    if (roots[k].origin == expected[k].origin) {
      EXPECT_NEAR(roots[k].offset / expected[k].offset, 1.0, 2e-12) << "gap " << k;
    }
  }
}

TEST_P(SecularShapes, EachRootLiesStrictlyInItsGap) {
  const Problem p = given();
  const auto roots = secular_roots(p.poles, p.weights);
  for (std::size_t k = 0; k < roots.size(); ++k) {
    const double half = 0.5 * (p.poles[k + 1] - p.poles[k]) * (1.0 + 1e-15);
    if (roots[k].origin == k) {
      EXPECT_TRUE(roots[k].offset > 0.0 && roots[k].offset <= half) << k;
    } else {
      EXPECT_EQ(roots[k].origin, k + 1);
      EXPECT_TRUE(roots[k].offset < 0.0 && roots[k].offset >= -half) << k;
    }
  }
}

TEST_P(SecularShapes, ResidualIsAtRoundingLevel) {
  const Problem p = given();
  for (const SecularRoot& root : secular_roots(p.poles, p.weights)) {
    long double sum = 0.0L;
    long double magnitude = 0.0L;
    for (std::size_t i = 0; i < p.poles.size(); ++i) {
      const long double term =
          p.weights[i] / ((static_cast<long double>(p.poles[i]) - p.poles[root.origin]) - root.offset);
      sum += term;
      magnitude += std::abs(term);
    }
    EXPECT_LE(std::abs(sum), 64.0L * 0x1p-53L * magnitude);
  }
}

TEST_P(SecularShapes, ThreadsDoNotChangeABit) {
  const Problem p = given();
  const auto one = secular_roots(p.poles, p.weights, 1);
  const auto many = secular_roots(p.poles, p.weights, 5);
  for (std::size_t k = 0; k < one.size(); ++k) {
    ASSERT_EQ(one[k].origin, many[k].origin);
    ASSERT_EQ(one[k].offset, many[k].offset);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SecularShapes,
                         testing::Combine(testing::Values("ordinary", "wide", "signed", "crowded", "repeated",
                                                          "zeros", "outlier"),
                                          testing::Values(2, 3, 7, 64, 300)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + std::to_string(std::get<1>(instance.param));
                         });

TEST(Secular, FewerThanTwoPolesHaveNoRoot) {
  const double pole = 1.0;
  EXPECT_TRUE(secular_roots({}, {}).empty());
  EXPECT_TRUE(secular_roots({&pole, 1}, {&pole, 1}).empty());
}

TEST(Secular, TwoEqualWeightsMeetHalfWay) {
  const std::vector<double> poles{1.0, 3.0};
  const std::vector<double> weights{1.0, 1.0};
  const auto roots = secular_roots(poles, weights);
  ASSERT_EQ(roots.size(), 1U);
  EXPECT_DOUBLE_EQ(poles[roots[0].origin] + roots[0].offset, 2.0);
}

TEST(Secular, ALargeWeightMovesTheRootToTheOtherPole) {
  // 1e30/(0 − ζ) + 1/(1 − ζ) = 0 has ζ = 1e30/(1e30 + 1): 1e-30 below the pole at 1.
  const std::vector<double> poles{0.0, 1.0};
  const std::vector<double> weights{1e30, 1.0};
  const auto roots = secular_roots(poles, weights);
  EXPECT_EQ(roots[0].origin, 1U);
  EXPECT_NEAR(roots[0].offset / -1e-30, 1.0, 1e-14);
}

}  // namespace
}  // namespace normscope
