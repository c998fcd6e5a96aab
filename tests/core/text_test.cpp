#include <normscope/core/text.hpp>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>

namespace normscope {
namespace {

TEST(Text, CountsHaveOneOrSeveral) {
  EXPECT_EQ(counted(0, "head"), "0 heads");
  EXPECT_EQ(counted(1, "head"), "1 head");
  EXPECT_EQ(counted(2, "head"), "2 heads");
}

TEST(Text, NumbersAreShownAlikeOnEveryMachine) {
  EXPECT_EQ(shown(0.5), "0.5");
  EXPECT_EQ(shown(1e-300), "1e-300");
  EXPECT_EQ(shown(-std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(shown(-std::numeric_limits<double>::infinity()), "-inf");
}

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

TEST(Printable, ControlsAndBrokenBytesAreEscaped) {
  EXPECT_EQ(printable("a\x1b[31m\n\t\x7f"), "a\\x1b[31m\\x0a\\x09\\x7f");
  EXPECT_EQ(printable(std::string("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc2\x9b"), "\\u009b");
}

TEST(Printable, WhatIsInvisibleOrChangesTheDirectionIsEscaped) {
  EXPECT_EQ(printable("a\u202eb\u2028c\u2029d\u200be\u2066f\u061cg\ufeffh\u00adi\U000e0041j"),
            "a\\u202eb\\u2028c\\u2029d\\u200be\\u2066f\\u061cg\\ufeffh\\u00adi\\ue0041j");
  for (const char* mark : {"\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u2060", "\u2067",
                           "\u2068", "\u2069", "\u206f", "\u180e", "\ufff9"}) {
    EXPECT_EQ(printable(mark).substr(0, 2), "\\u") << mark;
  }
}

TEST(Printable, OtherTextStaysAsItIs) {
  const std::string text = "שכבה.נרמול 層 🦜 1\u202f000 W₁ – µ";
  EXPECT_EQ(printable(text), text);
}

}  // namespace

}  // namespace normscope
