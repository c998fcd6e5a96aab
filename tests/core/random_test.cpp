#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>

namespace normscope {
namespace {

constexpr std::uint64_t most_bits = std::numeric_limits<std::uint64_t>::max();

TEST(Random, ASeedGivesTheNumbersOfXoshiro256PlusPlus) {
  Random random(0);
  // The first numbers from state 0 of SplitMix64, as other implementations compute them.
  for (const std::uint64_t number :
       {0x53175d61490b23dfULL, 0x61da6f3dc380d507ULL, 0x5c0fdf91ec9a7bfcULL, 0x02eebf8c3bbe5e1aULL}) {
    EXPECT_EQ(random.bits(), number);
  }
}

TEST(Random, BelowIsEvenForEveryBound) {
  // Just over half of all 64-bit numbers: of every two numbers drawn one is refused.
  constexpr std::uint64_t bound = (std::uint64_t{1} << 63U) + 1;
  Random random(7);
  std::array<int, 4> quarters{};
  for (int i = 0; i < 4000; ++i) {
    const std::uint64_t drawn = random.below(bound);
    ASSERT_LT(drawn, bound);
    ++quarters[std::size_t{drawn >> 61U} & 3U];
  }
  for (const int count : quarters) EXPECT_NEAR(count, 1000, 150);
}

TEST(Random, BelowTakesTheSmallestAndTheLargestBound) {
  Random random(7);
  Random same(7);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(most_bits), same.bits() % most_bits);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0U);
  // A power of two refuses nothing.
  for (int i = 0; i < 100; ++i) same.bits();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1U << 10U), same.bits() % 1024);
}

TEST(Random, UniformIsInTheUnitIntervalAndNormalHasItsMoments) {
  constexpr int count = 20'000;
  Random random(11);
  double sum = 0.0;
  double normal_sum = 0.0;
  double squares = 0.0;
  for (int i = 0; i < count; ++i) {
    const double uniform = random.uniform();
    ASSERT_TRUE(uniform >= 0.0 && uniform < 1.0) << uniform;
    ASSERT_EQ(std::ldexp(uniform, 53), std::floor(std::ldexp(uniform, 53)));
    sum += uniform;
    const double normal = random.normal();
    normal_sum += normal;
    squares += normal * normal;
  }
  // Five standard deviations.
  EXPECT_NEAR(sum / count, 0.5, 5 * std::sqrt(1.0 / 12 / count));
  EXPECT_NEAR(normal_sum / count, 0.0, 5 * std::sqrt(1.0 / count));
  EXPECT_NEAR(squares / count, 1.0, 5 * std::sqrt(2.0 / count));
}

}  // namespace
}  // namespace normscope
