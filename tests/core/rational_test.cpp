#include <normscope/core/exact.hpp>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/random.hpp>

namespace normscope {
namespace {

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
