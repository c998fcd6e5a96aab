#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <normscope/core/lanes.hpp>

namespace normscope {
namespace {

template <class Real>
class LanesOf : public ::testing::Test {};

using Reals = ::testing::Types<float, double>;
TYPED_TEST_SUITE(LanesOf, Reals);

/// An arbitrary number in [0, 1].
double anywhere() { return *rc::gen::inRange(0, 1'000'000'001) * 1e-9; }

TYPED_TEST(LanesOf, ExponentiateIsTheExponential) {
  using Real = TypeParam;
  EXPECT_TRUE(rc::check([] {
    const auto least = static_cast<double>(Simd<Real>::least);
    Lanes<Real> x{};
    Real given[lane_count<Real>];
    for (std::size_t lane = 0; lane < lane_count<Real>; ++lane) {
      x[lane] = given[lane] = static_cast<Real>(lane == 0 ? 0.0 : 1.2 * least * std::pow(anywhere(), 4));
    }
    exponentiate<Real>(x);
    for (std::size_t lane = 0; lane < lane_count<Real>; ++lane) {
      const double expected = std::exp(std::max(least, static_cast<double>(given[lane])));
      RC_ASSERT(std::abs(static_cast<double>(x[lane]) - expected) <=
                4.0 * std::numeric_limits<Real>::epsilon() * expected);
    }
  }));
}

TYPED_TEST(LanesOf, InvertRootIsTheInverseOfTheRoot) {
  using Real = TypeParam;
  EXPECT_TRUE(rc::check([] {
    Lanes<Real> x{};
    Real given[lane_count<Real>];
    for (std::size_t lane = 0; lane < lane_count<Real>; ++lane) {
      x[lane] = given[lane] = static_cast<Real>(std::pow(10.0, 60.0 * anywhere() - 30.0));
    }
    invert_root<Real>(x);
    for (std::size_t lane = 0; lane < lane_count<Real>; ++lane) {
      const double expected = 1.0 / std::sqrt(static_cast<double>(given[lane]));
      RC_ASSERT(std::abs(static_cast<double>(x[lane]) - expected) <=
                4.0 * std::numeric_limits<Real>::epsilon() * expected);
    }
  }));
}

}  // namespace
}  // namespace normscope
