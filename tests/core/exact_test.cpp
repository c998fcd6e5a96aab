#include <cmath>
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

}  // namespace
}  // namespace normscope
