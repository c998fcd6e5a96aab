#include <normscope/analysis/norm_reading.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::analysis {
namespace {

struct Row {
  NormSpec norm{};
  std::vector<double> reader{}, row{}, change{};
};

std::vector<double> normal_row(Random& random, std::size_t width) {
  std::vector<double> row(width);
  for (double& value : row) value = random.normal();
  return row;
}

Row random_row(std::uint64_t seed) {
  Random random(seed);
  Row result;
  do {
    result.norm.kind = norm_kinds[random.below(norm_kinds.size())].kind;
  } while (is_elementwise(result.norm.kind));
  const std::size_t width = 2 + random.below(20);
  result.norm.width = width;
  result.norm.eps = random.below(3) == 0 ? 0.0 : std::exp2(-20.0 * random.uniform());
  result.norm.gain = normal_row(random, width);
  result.norm.bias = normal_row(random, width);
  result.reader = normal_row(random, width);
  result.row = normal_row(random, width);
  result.change = normal_row(random, width);
  const double size = std::exp2(static_cast<double>(random.below(20)) - 14.0);
  const bool removes = random.below(3) == 0;  // nearly all of the row, so that the divisor almost vanishes
  for (std::size_t i = 0; i < width; ++i) {
    result.change[i] = removes ? -result.row[i] + 0x1p-12 * result.change[i] : size * result.change[i];
  }
  return result;
}

/// The reading by the module `norm`.
double normed(const Row& given, const std::vector<double>& x) {
  std::vector<double> y(x);
  norm::forward(given.norm, {y.data(), 1, y.size()}, {y.data(), 1, y.size()});
  double value = 0.0;
  for (std::size_t i = 0; i < y.size(); ++i) value += given.reader[i] * y[i];
  return value;
}

RC_GTEST_PROP(NormReading, HasTheChangeOfTheNormRunAgain, ()) {
  const Row given = random_row(*rc::gen::arbitrary<std::uint64_t>());
  const NormReading reading(given.norm, given.reader, 0.0, given.row);
  std::vector<double> after(given.row);
  for (std::size_t i = 0; i < after.size(); ++i) after[i] += given.change[i];
  const Effect effect = reading.effect(given.change);
  const double size = 1.0 + std::abs(normed(given, given.row)) + std::abs(normed(given, after));
  RC_ASSERT(std::abs(reading.value() - normed(given, given.row)) <= 1e-12 * size);
  RC_ASSERT(std::abs(effect.exact - (normed(given, after) - normed(given, given.row))) <=
            1e-9 * size + effect.rounding);
  RC_ASSERT(std::abs(reading.value_at(after) - normed(given, after)) <= 1e-9 * size + effect.rounding);
}

/// The effect by its definition, in extended precision.
struct Exact {
  long double frozen = 0.0L, exact = 0.0L;
};

Exact exact_effect(const NormReading& reading, const std::vector<double>& change) {
  const std::size_t width = change.size();
  long double middle = 0.0L;
  for (const double value : change) middle += value;
  middle = reading.centers() ? middle / static_cast<long double>(width) : 0.0L;
  long double along = 0.0L, projected = 0.0L, square = 0.0L, new_square = 0.0L;
  for (std::size_t i = 0; i < width; ++i) {
    const long double u = reading.row()[i], v = reading.direction()[i], d = change[i] - middle;
    along += v * d;
    projected += v * u;
    square += u * u;
    new_square += (u + d) * (u + d);
  }
  const long double s = std::sqrt(square / reading.squared_radius() + reading.eps());
  const long double after = std::sqrt(new_square / reading.squared_radius() + reading.eps());
  return {along / s, (projected + along) / after - projected / s};
}

RC_GTEST_PROP(NormReading, StaysWithinItsBoundOfRounding, ()) {
  const Row given = random_row(*rc::gen::arbitrary<std::uint64_t>());
  const NormReading reading(given.norm, given.reader, 0.0, given.row);
  const Effect effect = reading.effect(given.change);
  const Exact exact = exact_effect(reading, given.change);
  RC_ASSERT(std::abs(static_cast<double>(effect.frozen - exact.frozen)) <= effect.rounding);
  RC_ASSERT(std::abs(static_cast<double>(effect.exact - exact.exact)) <= effect.rounding);
  RC_ASSERT(std::abs(static_cast<double>(effect.price - (exact.exact - exact.frozen))) <= effect.rounding);
}

RC_GTEST_PROP(NormReading, BoundsTheErrorOfTheGradient, ()) {
  const Row given = random_row(*rc::gen::arbitrary<std::uint64_t>());
  const NormReading reading(given.norm, given.reader, 0.0, given.row);
  const Effect effect = reading.effect(given.change);
  RC_ASSERT(std::abs(effect.exact - effect.gradient) <= effect.remainder + effect.rounding);
}

// At eps 0 the second derivative is largest along a direction of cosine 1/√3 with the row.
TEST(NormReading, BoundsSmallStepsSharply) {
  const double c = std::sqrt(1.0 / 3.0), s = std::sqrt(2.0 / 3.0);
  Row given;
  given.norm = {.kind = NormKind::rms, .width = 2, .eps = 0.0};
  given.row = {3.0, 0.0};
  given.change = {1e-4 * c, 1e-4 * s};
  given.reader = {s * s, 2.0 * c * s};
  const Effect effect = NormReading(given.norm, given.reader, 0.0, given.row).effect(given.change);
  const double error = std::abs(effect.exact - effect.gradient);
  EXPECT_LE(error, effect.remainder);
  EXPECT_GE(error, 0.999 * effect.remainder);
}

TEST(NormReading, NothingChangesNothing) {
  const Row given = random_row(7);
  const NormReading reading(given.norm, given.reader, 0.0, given.row);
  const Effect none = reading.effect(std::vector<double>(given.row.size()));
  EXPECT_EQ(none.frozen, 0.0);
  EXPECT_EQ(none.price, 0.0);
  EXPECT_EQ(none.exact, 0.0);
  EXPECT_EQ(none.gradient, 0.0);
  EXPECT_EQ(none.remainder, 0.0);
}

}  // namespace
}  // namespace normscope::analysis
