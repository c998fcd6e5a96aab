#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/exact.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope {
namespace {

TEST(Rounding, BoundsSumsOfProducts) {
  Random random(5);
  for (const std::size_t terms : {std::size_t{1}, std::size_t{2}, std::size_t{30}, std::size_t{5000}}) {
    for (int trial = 0; trial < 50; ++trial) {
      // Numbers of one sign, which is the worst case, and of both signs.
      const double shift = trial % 2 == 0 ? 4.0 : 0.0;
      double forward = 0.0, fused = 0.0, size = 0.0;
      ExactSum exact;
      for (std::size_t i = 0; i < terms; ++i) {
        const double a = std::abs(random.normal()) + shift, b = random.normal() + shift;
        forward += a * b;
        fused = std::fma(a, b, fused);
        size += std::abs(a * b);
        exact.add({a, 0.0}, b);
      }
      const double bound = rounding(static_cast<std::ptrdiff_t>(terms)) * size;
      EXPECT_LE(std::abs(forward - exact.result().value), bound);
      EXPECT_LE(std::abs(fused - exact.result().value), bound);
    }
  }
}

TEST(Rounding, IsTheRoundoffOfDoubles) {
  EXPECT_EQ(1.0 + unit_roundoff, 1.0);
  EXPECT_GT(1.0 + unit_roundoff * (1.0 + 0x1p-52), 1.0);
}

}  // namespace
}  // namespace normscope
