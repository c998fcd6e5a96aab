#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/exact.hpp>
#include <normscope/core/random.hpp>

namespace normscope {
namespace {

// A type of 113 bits: that of AArch64 is long double, and gcc has no __float128 there.
#if LDBL_MANT_DIG == 113
using Quad = long double;
#else
__extension__ using Quad = __float128;
#endif

constexpr double bound = 16.0 * 0x1p-106;

Quad quad(const DoubleDouble& a) { return static_cast<Quad>(a.high) + static_cast<Quad>(a.low); }

Quad quad_sum(const DoubleDouble& a, const DoubleDouble& b) {
  return (static_cast<Quad>(a.high) + static_cast<Quad>(b.high)) +
         (static_cast<Quad>(a.low) + static_cast<Quad>(b.low));
}

/// |computed − exact| over |exact|.
double error(const DoubleDouble& computed, Quad exact) {
  const Quad difference = quad(computed) - exact;
  return std::abs(static_cast<double>(exact == 0 ? difference : difference / exact));
}

/// Both parts random, over many scales, often near one another.
DoubleDouble random_number(Random& random) {
  const double high = std::ldexp(random.normal(), static_cast<int>(random.below(60)) - 30);
  return DoubleDouble::sum(high,
                           std::ldexp(high * random.normal(), -54 - static_cast<int>(random.below(20))));
}

RC_GTEST_PROP(DoubleDouble, MatchesQuadruplePrecision, (std::uint64_t seed)) {
  Random random(seed);
  const DoubleDouble a = random_number(random);
  const DoubleDouble b = random_number(random);
  // Quadruple precision has 113 bits, seven more than what is tested. quad() rounds to them, so that sums and
  // differences, which may almost cancel, are of the parts.
  RC_ASSERT(error(a * b, quad(a) * quad(b)) <= bound);
  RC_ASSERT(error(a / b, quad(a) / quad(b)) <= bound);
  RC_ASSERT(error(a + b, quad_sum(a, b)) <= bound);
  const DoubleDouble magnitude = a < 0.0 ? -a : a;
  const DoubleDouble root = sqrt(magnitude);
  // (1 + δ)² − 1 is about 2δ.
  RC_ASSERT(error(magnitude, quad(root) * quad(root)) <= 2.0 * bound);
  const DoubleDouble near = a + DoubleDouble(std::ldexp(a.high, -40));
  RC_ASSERT(error(near - a, quad_sum(near, -a)) <= bound);
}

TEST(DoubleDouble, KeepsItsBoundNearTheEnds) {
  Random random(9);
  const auto of_size = [&](int exponent) {
    const DoubleDouble a = random_number(random);
    const int by = exponent - std::ilogb(a.high);
    return DoubleDouble(std::scalbn(a.high, by), std::scalbn(a.low, by));
  };
  for (int trial = 0; trial < 4000; ++trial) {
    for (const int size : {-899, 988}) {
      const int half = static_cast<int>(random.below(800)) - 400;
      const DoubleDouble a = of_size(size / 2 + half);
      const DoubleDouble b = of_size(size - size / 2 - half);
      EXPECT_LE(error(a * b, quad(a) * quad(b)), bound);
      const DoubleDouble c = of_size(size);
      EXPECT_LE(error(c / a, quad(c) / quad(a)), bound);
      const DoubleDouble root = sqrt(c < 0.0 ? -c : c);
      EXPECT_LE(error(c < 0.0 ? -c : c, quad(root) * quad(root)), 2.0 * bound);
    }
  }
}

RC_GTEST_PROP(DoubleDouble, SignsAreSymmetric, (std::uint64_t seed)) {
  Random random(seed);
  const DoubleDouble a = random_number(random);
  const DoubleDouble b = random_number(random);
  RC_ASSERT(-a + -b == -(a + b));
  RC_ASSERT(-a * b == -(a * b));
  RC_ASSERT(-a / b == -(a / b));
  RC_ASSERT(a + -a == DoubleDouble(0.0));
  RC_ASSERT(DoubleDouble(0.0) + a == a);
  RC_ASSERT(DoubleDouble(1.0) * a == a);
}

RC_GTEST_PROP(DoubleDouble, IsOrderedAsItsValue, (std::uint64_t seed)) {
  Random random(seed);
  const DoubleDouble a = random_number(random);
  const DoubleDouble b = DoubleDouble::sum(a.high, random.normal() * a.low);
  RC_ASSERT((a < b) == (quad(a) < quad(b)));
  RC_ASSERT((a > b) == (quad(a) > quad(b)));
}

TEST(DoubleDouble, ZeroHasARoot) { EXPECT_EQ(sqrt(DoubleDouble(0.0)), DoubleDouble(0.0)); }

}  // namespace
}  // namespace normscope
