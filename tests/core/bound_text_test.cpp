#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/core/text.hpp>

namespace normscope {
namespace {

double read(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

TEST(BoundText, LiesOutsideWhatItPrints) {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const double value = std::ldexp(random.normal(), static_cast<int>(random.below(2100)) - 1075);
    const int digits = 1 + static_cast<int>(random.below(15));
    const double above = read(at_most(value, digits));
    const double below = read(at_least(value, digits));
    ASSERT_GE(above, value) << digits;
    ASSERT_LE(below, value) << digits;
    if (std::abs(value) < 1e-290 || std::abs(value) > 1e290) continue;
    ASSERT_LE(above - below, 1.01 * std::abs(value) * std::pow(10.0, 1 - digits)) << value << " " << digits;
  }
}

TEST(BoundText, NumbersThatFitAreUnchanged) {
  for (const char* text : {"0", "1", "0.1", "-0.25", "123", "1e+06", "3.14", "1e-07", "4.94e-324"}) {
    EXPECT_EQ(at_most(read(text), 3), text);
    EXPECT_EQ(at_least(read(text), 3), text);
  }
  EXPECT_EQ(at_most(std::numeric_limits<double>::infinity(), 3), "inf");
}

TEST(BoundText, StepsOutwardAcrossPowersOfTen) {
  EXPECT_EQ(at_most(0.12341, 4), "0.1235");
  EXPECT_EQ(at_least(0.12349, 4), "0.1234");
  EXPECT_EQ(at_most(9.9991, 4), "10");
  EXPECT_EQ(at_least(9.9999, 4), "9.999");
  EXPECT_EQ(at_least(99.99, 3), "99.9");
  EXPECT_EQ(at_most(-9.9991, 4), "-9.999");
  EXPECT_EQ(at_least(-9.9991, 4), "-10");
}

}  // namespace
}  // namespace normscope
