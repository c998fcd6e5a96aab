#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/proof/ball.hpp>

namespace normscope::proof {
namespace {

struct Problem {
  std::size_t rows, width;
  std::vector<double> matrix, offset;

  [[nodiscard]] MatrixView<const double> view() const { return {matrix.data(), rows, width}; }
  [[nodiscard]] double length(const std::vector<double>& u) const {
    long double total = 0.0L;
    for (std::size_t i = 0; i < rows; ++i) {
      long double sum = offset[i];
      for (std::size_t j = 0; j < width; ++j) sum += static_cast<long double>(matrix[i * width + j]) * u[j];
      total += sum * sum;
    }
    return static_cast<double>(std::sqrt(total));
  }
  [[nodiscard]] double scale() const {
    double total = 0.0;
    for (const double value : matrix) total += value * value;
    double own = 0.0;
    for (const double value : offset) own += value * value;
    return std::sqrt(total) + std::sqrt(own);
  }
};

/// Shapes and sizes of every kind: an offset that is zero, small or large, and a matrix without full rank.
Problem problem(std::uint64_t seed) {
  Random random(seed);
  Problem p{1 + random.below(6), 1 + random.below(6), {}, {}};
  const double stretch = std::exp(3.0 * random.normal());
  const std::size_t rank = 1 + random.below(6);
  std::vector<double> left(p.rows * rank), right(rank * p.width);
  for (double& value : left) value = random.normal();
  for (double& value : right) value = random.normal();
  for (std::size_t i = 0; i < p.rows; ++i) {
    for (std::size_t j = 0; j < p.width; ++j) {
      double sum = 0.0;
      for (std::size_t r = 0; r < rank; ++r) sum += left[i * rank + r] * right[r * p.width + j];
      p.matrix.push_back(sum);
    }
  }
  for (std::size_t i = 0; i < p.rows; ++i) {
    p.offset.push_back(seed % 5 == 0 ? 0.0 : stretch * random.normal());
  }
  return p;
}

double length_of(const std::vector<double>& u) {
  double total = 0.0;
  for (const double value : u) total += value * value;
  return std::sqrt(total);
}

TEST(TrustRegion, BoundsMeet) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Problem p = problem(seed);
    const ExtremeLength least = least_length(p.view(), p.offset);
    const ExtremeLength largest = largest_length(p.view(), p.offset);
    EXPECT_LE(least.lower, least.upper);
    EXPECT_LE(largest.lower, largest.upper);
    EXPECT_LE(least.upper - least.lower, 1e-12 * p.scale()) << seed;
    EXPECT_LE(largest.upper - largest.lower, 1e-12 * p.scale()) << seed;
    EXPECT_LE(length_of(least.point), 1.0);
    EXPECT_LE(length_of(largest.point), 1.0);
    EXPECT_LE(p.length(least.point), least.upper) << seed;
    EXPECT_GE(p.length(largest.point), largest.lower) << seed;
  }
}

/// The bounds of a problem times 2^exponent against those of the problem.
void expect_scaled(const Problem& plain, int exponent) {
  Problem p = plain;
  for (double& value : p.matrix) value = std::scalbn(value, exponent);
  for (double& value : p.offset) value = std::scalbn(value, exponent);
  const ExtremeLength expected[] = {least_length(plain.view(), plain.offset),
                                    largest_length(plain.view(), plain.offset)};
  const ExtremeLength found[] = {least_length(p.view(), p.offset), largest_length(p.view(), p.offset)};
  const double allowed = 1e-12 * plain.scale();
  for (int which = 0; which < 2; ++which) {
    const double lower = std::scalbn(found[which].lower, -exponent);
    const double upper = std::scalbn(found[which].upper, -exponent);
    EXPECT_LE(upper - lower, allowed) << exponent;
    EXPECT_LE(lower, expected[which].upper) << exponent;
    EXPECT_GE(upper, expected[which].lower) << exponent;
    EXPECT_TRUE(std::isfinite(found[which].multiplier)) << exponent;
  }
  // The proofs alone, from the points.
  EXPECT_LE(proved_least(p.view(), p.offset, found[0].point, {}).upper, found[0].upper);
  const ExtremeLength proved = proved_largest(p.view(), p.offset, found[1].point, found[1].multiplier);
  EXPECT_GE(proved.lower, found[1].lower);
  EXPECT_GE(std::scalbn(proved.upper, -exponent), expected[1].lower) << exponent;
}

TEST(TrustRegion, NumbersOfAnySize) {
  const Problem plain{2, 2, {1.0, 2.0, 3.0, -1.0}, {0.3, 0.4}};
  EXPECT_NEAR(largest_length(plain.view(), plain.offset).upper, 3.6532983385, 1e-8);
  for (int exponent = -1000; exponent <= 1000; exponent += 25) {
    expect_scaled(plain, exponent);
    expect_scaled(problem(static_cast<std::uint64_t>(exponent) + 1000), exponent);
  }
  // Sizes from 1e-300 to 1e300 that are not powers of two.
  for (int power = -300; power <= 300; power += 5) {
    const double s = std::pow(10.0, power);
    Problem p = plain;
    for (double& value : p.matrix) value *= s;
    for (double& value : p.offset) value *= s;
    const ExtremeLength least = least_length(p.view(), p.offset);
    const ExtremeLength largest = largest_length(p.view(), p.offset);
    EXPECT_EQ(least.lower, 0.0) << power;
    EXPECT_LE(least.upper / s, 1e-12) << power;
    const ExtremeLength expected = largest_length(plain.view(), plain.offset);
    EXPECT_NEAR(largest.lower / s, expected.lower, 1e-11) << power;
    EXPECT_NEAR(largest.upper / s, expected.upper, 1e-11) << power;
  }
}

TEST(TrustRegion, MatrixAndOffsetOfVeryDifferentSizes) {
  // Exponents below 0 shrink the matrix, those above 0 the offset, by 2^-|exponent|.
  for (const int exponent : {-1070, -1030, -600, -540, -530, -500, -300, -60, 60, 300, 530, 600, 1000}) {
    for (std::uint64_t seed = 1; seed < 30; ++seed) {
      if (seed % 5 == 0) continue;  // no offset
      Problem p = problem(seed);
      for (double& value : exponent < 0 ? p.matrix : p.offset)
        value = std::scalbn(value, -std::abs(exponent));
      const ExtremeLength least = least_length(p.view(), p.offset);
      const ExtremeLength largest = largest_length(p.view(), p.offset);
      EXPECT_LE(least.upper - least.lower, 1e-12 * p.scale()) << exponent << " " << seed;
      EXPECT_LE(largest.upper - largest.lower, 1e-12 * p.scale()) << exponent << " " << seed;
      EXPECT_LE(p.length(least.point), least.upper) << exponent << " " << seed;
      EXPECT_GE(p.length(largest.point), largest.lower) << exponent << " " << seed;
      EXPECT_GE(p.length(least.point), least.lower) << exponent << " " << seed;
      EXPECT_LE(p.length(largest.point), largest.upper) << exponent << " " << seed;
    }
  }
  // The least length is far below the rounding of squares.
  const Problem small{2, 2, {1.0, 0.0, 0.0, 1e-180}, {0.0, 1e-170}};
  EXPECT_GE(least_length(small.view(), small.offset).upper, 1e-171);
}

TEST(TrustRegion, BoundsMeetAtTheWidthOfAHead) {
  for (const bool hard : {false, true}) {
    Random random(3);
    Problem p{256, 256, std::vector<double>(256 * 256), std::vector<double>(256)};
    for (double& value : p.matrix) value = random.normal();
    for (double& value : p.offset) value = hard ? 0.0 : random.normal();
    const double allowed = (1e-12 + 8.0 * 256.0 * 256.0 * 0x1p-53) * p.scale();
    const ExtremeLength least = least_length(p.view(), p.offset);
    const ExtremeLength largest = largest_length(p.view(), p.offset);
    EXPECT_LE(least.upper - least.lower, allowed);
    EXPECT_LE(largest.upper - largest.lower, allowed);
    EXPECT_LE(largest.lower, largest.upper);
  }
}

TEST(TrustRegion, NoPointOfTheBallIsBeyondTheBounds) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Problem p = problem(seed);
    const ExtremeLength least = least_length(p.view(), p.offset);
    const ExtremeLength largest = largest_length(p.view(), p.offset);
    Random random(seed + 7);
    for (int draw = 0; draw < 300; ++draw) {
      std::vector<double> u(p.width);
      for (double& value : u) value = random.normal();
      const double shrink = (draw % 3 == 0 ? random.uniform() : 1.0) / std::max(1e-300, length_of(u));
      for (double& value : u) value *= shrink * (1.0 - 1e-15);
      EXPECT_GE(p.length(u), least.lower * (1.0 - 1e-15)) << seed;
      EXPECT_LE(p.length(u), largest.upper * (1.0 + 1e-15)) << seed;
    }
  }
}

TEST(TrustRegion, SolvesTheHardCase) {
  // The offset has no component along the longest axis, so the multiplier is the square of its length.
  const Problem p{2, 2, {3.0, 0.0, 0.0, 1.0}, {0.0, 0.5}};
  const ExtremeLength largest = largest_length(p.view(), p.offset);
  // v₂ = c/(9 − 1), v₁² = 1 − v₂²: the square is 9 v₁² + (v₂ + 1/2)².
  const double v2 = 0.5 / 8.0;
  const double expected = std::sqrt(9.0 * (1.0 - v2 * v2) + (v2 + 0.5) * (v2 + 0.5));
  EXPECT_NEAR(largest.lower, expected, 1e-14 * expected);
  EXPECT_NEAR(largest.upper, expected, 1e-13 * expected);
  EXPECT_NEAR(largest.multiplier, 9.0, 1e-12);
}

TEST(TrustRegion, SolvesTheEasyCases) {
  const Problem zero{2, 3, std::vector<double>(6, 0.0), {3.0, 4.0}};
  EXPECT_NEAR(least_length(zero.view(), zero.offset).lower, 5.0, 1e-13);
  EXPECT_NEAR(largest_length(zero.view(), zero.offset).upper, 5.0, 1e-13);
  const Problem line{1, 1, {2.0}, {1.0}};
  EXPECT_LE(least_length(line.view(), line.offset).upper, 1e-14);
  EXPECT_NEAR(largest_length(line.view(), line.offset).lower, 3.0, 1e-13);
  const Problem far{1, 1, {2.0}, {-5.0}};
  EXPECT_NEAR(least_length(far.view(), far.offset).lower, 3.0, 1e-13);
  EXPECT_NEAR(largest_length(far.view(), far.offset).upper, 7.0, 1e-12);
}

TEST(TrustRegion, BoundsHoldForAnyPointAndMultiplier) {
  for (std::uint64_t seed = 1; seed < 60; ++seed) {
    const Problem p = problem(seed);
    const ExtremeLength least = least_length(p.view(), p.offset);
    const ExtremeLength largest = largest_length(p.view(), p.offset);
    Random random(seed);
    std::vector<double> other(p.width);
    for (double& value : other) value = random.normal();
    for (double& value : other) value /= 1.01 * std::max(1.0, length_of(other));
    std::vector<double> dual(p.rows);
    for (double& value : dual) value = random.normal();
    const ExtremeLength worse_least = proved_least(p.view(), p.offset, other, dual);
    EXPECT_LE(worse_least.lower, least.upper);
    EXPECT_GE(worse_least.upper, least.lower);
    const ExtremeLength worse_largest =
        proved_largest(p.view(), p.offset, other, largest.multiplier * random.uniform());
    EXPECT_GE(worse_largest.upper, largest.lower) << seed;
    EXPECT_LE(worse_largest.lower, largest.upper);
    for (double& value : other) value = 2.0;
    EXPECT_TRUE(std::isinf(proved_least(p.view(), p.offset, other, dual).upper));
    const ExtremeLength again = proved_least(p.view(), p.offset, least.point, least.dual);
    EXPECT_EQ(again.lower, least.lower);
    EXPECT_EQ(again.upper, least.upper);
    EXPECT_EQ(proved_largest(p.view(), p.offset, other, largest.multiplier).lower, 0.0);
  }
}

/// The sum of large numbers that is least is nearly 0, and so is each of its products with the matrix.
TEST(TrustRegion, SmallLengthsOfLargeImagesAreBounded) {
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    Random random(seed);
    Problem p{3, 2, {}, {}};
    for (int i = 0; i < 6; ++i) p.matrix.push_back(1e8 * random.normal() * std::exp(3.0 * random.normal()));
    const auto at = [&](std::size_t i, std::size_t j) { return p.matrix[2 * i + j]; };
    // 0.1 times a unit vector orthogonal to both columns, from the image of a point inside the ball.
    std::vector<double> normal;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::size_t a = (i + 1) % 3, b = (i + 2) % 3;
      normal.push_back(at(a, 0) * at(b, 1) - at(b, 0) * at(a, 1));
    }
    const double length = length_of(normal);
    for (std::size_t i = 0; i < 3; ++i) {
      p.offset.push_back(0.1 * normal[i] / length + 0.3 * at(i, 0) - 0.5 * at(i, 1));
    }
    const ExtremeLength least = least_length(p.view(), p.offset);
    EXPECT_LE(least.upper - least.lower, 1e-14 * p.scale()) << seed;
    EXPECT_NEAR(least.lower, 0.1, 1e-14 * p.scale()) << seed;
  }
}

TEST(TrustRegion, APointThatIsNoneProvesNothing) {
  const Problem p{2, 2, {3.0, 0.0, 0.0, 1.0}, {0.0, 0.5}};
  const double largest = largest_length(p.view(), p.offset).upper;
  for (const std::vector<double>& point :
       {std::vector<double>{}, {0.5}, {0.5, 0.5, 0.5}, {std::nan(""), 0.0}, {INFINITY, 0.0}, {1.0, 1.0}}) {
    const ExtremeLength least = proved_least(p.view(), p.offset, point, point);
    EXPECT_TRUE(std::isinf(least.upper));
    EXPECT_EQ(least.lower, 0.0);
    const ExtremeLength most = proved_largest(p.view(), p.offset, point, 9.0);
    EXPECT_EQ(most.lower, 0.0);
    EXPECT_GE(most.upper, largest * (1.0 - 1e-12));
  }
}

TEST(TrustRegion, AnyMultiplierGivesABound) {
  const Problem p{2, 2, {3.0, 0.0, 0.0, 1.0}, {0.0, 0.5}};
  const ExtremeLength best = largest_length(p.view(), p.offset);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const double multiplier : {0.0, -1.0, -infinity, 1e300, 1.7e308, infinity, std::nan("")}) {
    const ExtremeLength proved = proved_largest(p.view(), p.offset, best.point, multiplier);
    EXPECT_EQ(proved.lower, best.lower) << multiplier;
    EXPECT_GE(proved.upper, best.lower) << multiplier;
    // The sizes of matrix and offset bound every length.
    EXPECT_LE(proved.upper, (std::sqrt(10.0) + 0.5) * (1.0 + 1e-12)) << multiplier;
  }
}

TEST(TrustRegion, RejectsInvalidProblems) {
  const std::vector<double> one{1.0};
  EXPECT_THROW((void)least_length({one.data(), 1, 1}, {}), Error);
  EXPECT_THROW((void)largest_length({one.data(), 0, 1}, {}), Error);
  EXPECT_THROW((void)largest_length({one.data(), 1, 0}, one), Error);
  const std::vector<double> nan{std::nan("")};
  EXPECT_THROW((void)least_length({nan.data(), 1, 1}, one), Error);
  EXPECT_THROW((void)largest_length({one.data(), 1, 1}, nan), Error);
}

}  // namespace
}  // namespace normscope::proof
