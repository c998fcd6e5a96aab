#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/binary_scale.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope {
namespace {

TEST(BinaryScale, TheLargestComesNearOne) {
  for (const double largest : {1.0, 1.5, 3.0, 1e-3, 1e200, 1e-200, 1e308, std::numeric_limits<double>::max(),
                               std::numeric_limits<double>::min(), std::numeric_limits<double>::denorm_min(),
                               7.0 * std::numeric_limits<double>::denorm_min()}) {
    for (const double sign : {1.0, -1.0}) {
      const std::vector<double> values{0.0, sign * largest, 0.25 * largest};
      const BinaryScale scale = BinaryScale::of(values);
      const double quotient = scale.divide(values[1]);
      EXPECT_GE(std::abs(quotient), 1.0) << largest;
      EXPECT_LT(std::abs(quotient), 2.0) << largest;
      EXPECT_EQ(scale.multiply(quotient), values[1]) << largest;
      EXPECT_EQ(std::scalbn(quotient, scale.exponent()), values[1]) << largest;
    }
  }
  EXPECT_TRUE(BinaryScale::of(1.75).is_one());
}

TEST(BinaryScale, NothingToScaleLeavesNumbersAsTheyAre) {
  const std::vector<double> none;
  EXPECT_TRUE(BinaryScale::of(none).is_one());
  EXPECT_TRUE(BinaryScale::of(0.0).is_one());
  EXPECT_TRUE(BinaryScale::of(infinity).is_one());
  const std::vector<double> broken{1e300, std::nan(""), 2.0};
  EXPECT_TRUE(BinaryScale::of(broken).is_one());
  EXPECT_TRUE(std::isnan(largest_size(broken)));
  EXPECT_EQ(BinaryScale().divide(0.3), 0.3);
}

TEST(BinaryScale, RoundsOnlyWhatUnderflows) {
  Random random(3);
  for (const int exponent : {-1074, -1073, -1023, -1022, -511, -3, 0, 1, 511, 1022, 1023}) {
    const BinaryScale scale = BinaryScale::of_exponent(exponent);
    for (int trial = 0; trial < 2000; ++trial) {
      const int size = -1074 + static_cast<int>(random.below(2098));
      const double value = std::scalbn(random.normal(), size);
      if (!std::isfinite(value)) continue;
      const long double exact = std::scalbn(static_cast<long double>(value), -exponent);
      const long double back = std::scalbn(static_cast<long double>(value), exponent);
      const double quotient = scale.divide(value);
      const double product = scale.multiply(value);
      const auto expect = [&](long double wanted, double found) {
        if (std::abs(wanted) > static_cast<long double>(std::numeric_limits<double>::max())) {
          EXPECT_EQ(std::abs(found), infinity);
        } else if (std::abs(wanted) >= static_cast<long double>(std::numeric_limits<double>::min())) {
          EXPECT_EQ(static_cast<long double>(found), wanted) << value << " " << exponent;
        } else {
          EXPECT_LT(std::abs(static_cast<long double>(found) - wanted), 0x1p-1074L)
              << value << " " << exponent;
        }
      };
      expect(exact, quotient);
      expect(back, product);
    }
  }
}

TEST(BinaryScale, MatricesKeepTheirRows) {
  const std::vector<double> values{1e200, 2e200, -1.0, 3e200, 0.0, 5.0};
  const MatrixView<const double> matrix(values.data(), 2, 2, 3);
  const BinaryScale scale = BinaryScale::of(matrix);
  EXPECT_EQ(scale.exponent(), std::ilogb(3e200));
  const std::vector<double> divided = scale.divided(matrix);
  ASSERT_EQ(divided.size(), 4U);
  EXPECT_EQ(scale.multiply(divided[1]), 2e200);
  EXPECT_EQ(divided[3], 0.0);
}

}  // namespace
}  // namespace normscope
