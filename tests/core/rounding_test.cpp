#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include <fmt/core.h>
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

TEST(Sum, KeepsWhatPlainAdditionLoses) {
  const std::vector<double> values{1.0, 1e100, 1.0, -1e100};
  EXPECT_EQ(sum(values), 2.0);
}

TEST(Sum, ErrorDoesNotGrowWithTheNumberOfTerms) {
  Random random(3);
  std::vector<double> values(200'000);
  long double exact = 0.0L;
  for (double& value : values) {
    value = 1e6 + random.normal();
    exact += value;
  }
  EXPECT_NEAR(sum(values), static_cast<double>(exact), 0x1p-51 * std::abs(static_cast<double>(exact)));
}

TEST(Sum, NormSurvivesExtremeScales) {
  for (const double unit : {1e-320, 1e-160, 1.0, 1e160, 1e307}) {
    const std::vector<double> values{3.0 * unit, -4.0 * unit, 12.0 * unit};
    EXPECT_NEAR(euclidean_norm(values) / unit, 13.0, unit < 1e-300 ? 0.01 : 1e-14) << unit;
  }
  EXPECT_EQ(euclidean_norm(std::vector<double>{}), 0.0);
  EXPECT_EQ(euclidean_norm(std::vector<double>{0.0, -0.0}), 0.0);
  EXPECT_TRUE(std::isnan(euclidean_norm(std::vector<double>{1.0, std::nan(""), 2.0})));
  EXPECT_TRUE(std::isnan(euclidean_norm(std::vector<double>{std::nan(""), 0.0})));
  EXPECT_TRUE(std::isinf(euclidean_norm(std::vector<double>{1.0, -std::numeric_limits<double>::infinity()})));
}

TEST(Sum, CentersNearlyEqualEntries) {
  // The rounded mean of such a row is off by as much as the row varies.
  Random random(5);
  for (const std::size_t n : {2, 3, 49, 333, 5000, 40'000}) {
    for (int trial = 0; trial < 8; ++trial) {
      const double c = 1.0 + random.uniform();
      std::vector<double> x(n, c);
      x[random.below(n)] = trial % 2 == 0 ? std::nextafter(c, 4.0) : c * (1.0 + 1e-9);
      // Differences of the entries are exact, so that their mean is accurate beside them.
      DoubleDouble mean;
      for (const double value : x) mean += DoubleDouble(value - c);
      mean /= DoubleDouble(static_cast<double>(n));
      std::vector<double> y = x;
      center(y);
      double sizes = 0.0;
      for (const double value : x) sizes += std::abs(to_double(DoubleDouble(value - c) - mean));
      for (std::size_t i = 0; i < n; ++i) {
        const DoubleDouble exact = DoubleDouble(x[i] - c) - mean;
        ASSERT_LE(std::abs(to_double(DoubleDouble(y[i]) - exact)),
                  0x1p-51 * (std::abs(to_double(exact)) + sizes / static_cast<double>(n)))
            << n << " " << i;
      }
    }
  }
}

TEST(Sum, CorrelationIsThatOfLines) {
  const std::vector<double> x{1.0, 2.0, 4.0, 7.0};
  EXPECT_NEAR(correlation(x, {-3.0, -5.0, -9.0, -15.0}), -1.0, 1e-15);
  EXPECT_NEAR(correlation(x, {1e9 + 2.0, 1e9 + 4.0, 1e9 + 8.0, 1e9 + 14.0}), 1.0, 1e-6);
  EXPECT_NEAR(correlation({1.0, 0.0, -1.0, 0.0}, {0.0, 1.0, 0.0, -1.0}), 0.0, 1e-15);
  EXPECT_TRUE(std::isnan(correlation(x, {2.0, 2.0, 2.0, 2.0})));
}

}  // namespace

}  // namespace normscope
