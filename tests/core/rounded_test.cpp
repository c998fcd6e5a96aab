#include <normscope/core/rounding.hpp>

#include <cmath>
#include <cstdlib>
#include <limits>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <normscope/core/random.hpp>

namespace normscope {
namespace {

TEST(Rounded, PrintsInFewDigits) {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    const double value = random.normal() * std::pow(10.0, 20.0 * random.uniform() - 10.0);
    const int digits = 1 + i % 6;
    EXPECT_EQ(rounded_to_digits(value, digits),
              std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr))
        << value << " to " << digits;
  }
  for (const double value : {0.0, 1.0, -1000.0, 0.001, 9.99996, 99999.6, 1e15, 1e-15, 12344.5}) {
    EXPECT_EQ(rounded_to_digits(value, 5), std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr))
        << value;
  }
}

TEST(Rounded, LeavesWhatItCannotShorten) {
  EXPECT_EQ(rounded_to_digits(1.23456789e-300, 5), 1.23456789e-300);
  EXPECT_EQ(rounded_to_digits(-std::numeric_limits<double>::infinity(), 5),
            -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(rounded_to_digits(std::nan(""), 5)));
}

TEST(Rounded, KeepsFourDecimals) {
  EXPECT_EQ(rounded_to_four_decimals(0.12345678), 0.1235);
  EXPECT_EQ(rounded_to_four_decimals(-2.00004), -2.0);
}

}  // namespace
}  // namespace normscope
