#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/exact.hpp>
#include <normscope/core/random.hpp>

namespace normscope {
namespace {

__extension__ using Wide = __int128;

/// |value − exact| for an integer that is too long for a double.
double distance(double value, Wide exact) {
  const Wide whole = static_cast<Wide>(value);
  return std::abs(static_cast<double>(whole - exact) + (value - static_cast<double>(whole)));
}

TEST(Exact, SumsAndProductsLoseNothing) {
  const DoubleDouble sum = two_sum(1.0, 0x1p-80);
  EXPECT_EQ(sum.high, 1.0);
  EXPECT_EQ(sum.low, 0x1p-80);
  const DoubleDouble product = two_product(1.0 + 0x1p-40, 1.0 - 0x1p-40);
  EXPECT_EQ(product.high, 1.0);
  EXPECT_EQ(product.low, -0x1p-80);
}

RC_GTEST_PROP(Exact, DifferenceDotIsWithinItsBound, (std::uint64_t seed)) {
  Random random(seed);
  const std::size_t width = 1 + random.below(200);
  const auto integer = [&](std::uint64_t bits) {
    return static_cast<std::int64_t>(random.below(std::uint64_t{1} << bits)) -
           (std::int64_t{1} << (bits - 1));
  };
  std::vector<double> direction;
  std::vector<double> a;
  std::vector<double> b;
  Wide exact = 0;
  double size = 0x1p104;
  for (std::size_t i = 0; i < width; ++i) {
    const std::int64_t q = integer(1 + random.below(52));
    const std::int64_t x = integer(53);
    // Near x, so that differences need every bit.
    const std::int64_t y = random.below(2) == 0 ? integer(53) : x / 2 + integer(3);
    exact += static_cast<Wide>(q) * (static_cast<Wide>(x) - y);
    size += std::abs(static_cast<double>(q) * static_cast<double>(x - y));
    direction.push_back(static_cast<double>(q));
    a.push_back(static_cast<double>(x));
    b.push_back(static_cast<double>(y));
  }
  // A last term that all but cancels the others.
  const std::int64_t rest = static_cast<std::int64_t>(exact >> 52);
  if (rest > -(std::int64_t{1} << 52) && rest < (std::int64_t{1} << 52)) {
    exact -= static_cast<Wide>(rest) << 52;
    direction.push_back(-0x1p52);
    a.push_back(static_cast<double>(rest));
    b.push_back(0.0);
  }
  const Bounded result = difference_dot(direction, a, b);
  RC_ASSERT(distance(result.value, exact) <= result.error);
  RC_ASSERT(result.error <= 4.0 * 0x1p-53 * std::abs(result.value) + 1e-25 * size);
}

Rational random_fraction(Random& random) {
  const auto below = [&](std::uint64_t bound) { return static_cast<std::int64_t>(random.below(bound)); };
  return {below(2001) - 1000, 1 + below(1000)};
}

RC_GTEST_PROP(Rational, IsTheFieldOfFractions, (std::uint64_t seed)) {
  Random random(seed);
  const Rational a = random_fraction(random);
  const Rational b = random_fraction(random);
  const Rational c = random_fraction(random);
  RC_ASSERT(a + b == b + a);
  RC_ASSERT((a + b) + c == a + (b + c));
  RC_ASSERT((a * b) * c == a * (b * c));
  RC_ASSERT(a * (b + c) == a * b + a * c);
  RC_ASSERT((a - a).is_zero());
  RC_ASSERT(a + -b == a - b);
  if (!b.is_zero()) RC_ASSERT(a / b * b == a);
  RC_ASSERT(std::abs((a * b + c).value() - (a.value() * b.value() + c.value())) <= 1e-9);
  RC_ASSERT((a < b) == (a.value() < b.value()));
}

TEST(Rational, IsInLowestTerms) {
  EXPECT_EQ(Rational(6, -4), Rational(-3, 2));
  EXPECT_EQ(Rational(6, -4).text(), "-3/2");
  EXPECT_EQ(Rational(0, -4), Rational(0));
  EXPECT_EQ(Rational(8, 4).text(), "2");
  EXPECT_EQ(Rational(-1, 3).sign(), -1);
}

TEST(Rational, IsExactOrAnError) {
  Rational power(1);
  for (int i = 0; i < 126; ++i) power *= 2;
  EXPECT_EQ((power - Rational(1)) + Rational(1), power);
  EXPECT_EQ(power.value(), 0x1p126);
  EXPECT_THROW(static_cast<void>(power * 4), Error);
  EXPECT_THROW(static_cast<void>(power + power), Error);
  EXPECT_EQ(power * (Rational(1) / power), Rational(1));
  EXPECT_EQ(power.text(), "85070591730234615865843651857942052864");
  const Rational least(std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(-least - 1, Rational(std::numeric_limits<std::int64_t>::max()));
}

}  // namespace

}  // namespace normscope
