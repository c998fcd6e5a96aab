#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/proof/separate.hpp>

#include "points.hpp"

namespace normscope::proof {
namespace {

Points grid(std::size_t rows, std::size_t width, std::uint64_t seed, double shift) {
  Points points = normal_points(rows, width, seed, shift);
  for (double& value : points.values) value = std::round(1.5 * value);
  return points;
}

ExactSeparation decide(const Points& a, const Points& b) {
  ExactSeparation result = separate_exactly(a.view(), b.view());
  EXPECT_TRUE(verify(a.view(), b.view(), result));
  return result;
}

__extension__ using Wide = __int128;

Wide number(const std::string& digits) {
  Wide value = 0;
  for (const char digit : digits) {
    if (digit != '-') value = 10 * value + (digit - '0');
  }
  return digits[0] == '-' ? -value : value;
}

/// Checks a certificate for points of small integers in integer arithmetic.
bool holds(const Points& a, const Points& b, const ExactSeparation& separation) {
  const std::size_t width = a.width;
  if (separation.answer == Answer::yes) {
    const auto score = [&](const Points& set, std::size_t row) {
      Wide total = 0;
      for (std::size_t i = 0; i < width; ++i) {
        total += number(separation.normal[i]) * static_cast<Wide>(set.view().row(row)[i]);
      }
      return total;
    };
    for (std::size_t i = 0; i < a.view().rows(); ++i) {
      for (std::size_t j = 0; j < b.view().rows(); ++j) {
        if (score(a, i) <= score(b, j)) return false;
      }
    }
    return true;
  }
  std::vector<Wide> difference(width);
  Wide of_a = 0;
  Wide of_b = 0;
  for (const ExactShare& share : separation.a) {
    if (number(share.numerator) <= 0) return false;
    of_a += number(share.numerator);
    for (std::size_t i = 0; i < width; ++i) {
      difference[i] += number(share.numerator) * static_cast<Wide>(a.view().row(share.row)[i]);
    }
  }
  for (const ExactShare& share : separation.b) {
    if (number(share.numerator) <= 0) return false;
    of_b += number(share.numerator);
    for (std::size_t i = 0; i < width; ++i) {
      difference[i] -= number(share.numerator) * static_cast<Wide>(b.view().row(share.row)[i]);
    }
  }
  for (const Wide value : difference) {
    if (value != 0) return false;
  }
  return separation.answer == Answer::no && of_a == number(separation.denominator) && of_b == of_a;
}

RC_GTEST_PROP(ExactSeparation, CertificatesHoldInIntegers, (std::uint64_t seed)) {
  Random random(seed);
  const std::size_t width = 1 + random.below(4);
  const double shift = static_cast<double>(random.below(4));
  const Points a = grid(1 + random.below(3 * width), width, seed, shift);
  const Points b = grid(1 + random.below(3 * width), width, seed + 1, 0.0);
  const ExactSeparation result = separate_exactly(a.view(), b.view());
  RC_ASSERT(result.answer != Answer::undecided);
  RC_ASSERT(holds(a, b, result));
  RC_ASSERT(verify(a.view(), b.view(), result));
}

/// The primes that `src/proof/gmp/simplex.cpp` computes with.
constexpr double primes[] = {1073741789, 1073741783, 1073741741, 1073741723};

/// Modulo the first prime every column of coordinates is 0, so that the basis is inverted anew modulo the
/// next.
TEST(ExactSeparation, MultiplesOfThePrimeHaveTheSameAnswer) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::size_t width = 1 + seed % 4;
    Points a = grid(2 * width, width, seed, static_cast<double>(seed % 3));
    Points b = grid(2 * width, width, seed + 1, 0.0);
    const Answer expected = decide(a, b).answer;
    for (Points* set : {&a, &b})
      for (double& value : set->values) value *= primes[0];
    const ExactSeparation result = decide(a, b);
    EXPECT_EQ(result.answer, expected) << seed;
    EXPECT_TRUE(holds(a, b, result)) << seed;
  }
}

/// With a coordinate for each prime every determinant is 0 modulo all of them.
TEST(ExactSeparation, SaysWhenNoPrimeIsLeft) {
  Points a = grid(12, 4, 1, 0.0);
  Points b = grid(12, 4, 2, 0.0);
  for (Points* set : {&a, &b})
    for (std::size_t i = 0; i < set->values.size(); ++i) set->values[i] *= primes[i % 4];
  const ExactSeparation result = separate_exactly(a.view(), b.view());
  EXPECT_EQ(result.answer, Answer::undecided);
  EXPECT_EQ(result.reason, "a basis that is singular modulo every prime tried");
}

/// Points on planes one unit apart, with coordinates so large that scores in float64 lose the difference.
TEST(ExactSeparation, ScoresThatDoublesRoundAreCompared) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const double n[] = {static_cast<double>(random.below(900)) + 100.0,
                        static_cast<double>(random.below(900)) + 100.0};
    Points a{.width = 3};
    Points b{.width = 3};
    for (int row = 0; row < 12; ++row) {
      const double x = std::round(std::scalbn(random.normal(), 38));
      const double y = std::round(std::scalbn(random.normal(), 38));
      const double above = static_cast<double>(random.below(3)) + 1.0;
      // Exact: below 2^53.
      a.values.insert(a.values.end(), {x, y, above - n[0] * x - n[1] * y});
      b.values.insert(b.values.end(), {y, x, 1.0 - above - n[0] * y - n[1] * x});
    }
    const ExactSeparation result = separate_exactly(a.view(), b.view());
    ASSERT_EQ(result.answer, Answer::yes) << seed;
    EXPECT_TRUE(holds(a, b, result)) << seed;
    // A certificate for other rows.
    ExactSeparation forged = result;
    forged.normal = {std::to_string(static_cast<long>(n[0])), std::to_string(static_cast<long>(n[1]) + 1),
                     "1"};
    EXPECT_FALSE(verify(a.view(), b.view(), forged));
    forged.normal = {std::to_string(static_cast<long>(n[0])), std::to_string(static_cast<long>(n[1])), "1"};
    EXPECT_TRUE(verify(a.view(), b.view(), forged));
    a.values[2] -= a.values[2] + n[0] * a.values[0] + n[1] * a.values[1];
    EXPECT_EQ(verify(a.view(), b.view(), forged), holds(a, b, forged)) << seed;
  }
}

RC_GTEST_PROP(ExactSeparation, EveryAnswerIsProved, (std::uint64_t seed)) {
  Random random(seed);
  const std::size_t width = 1 + random.below(5);
  const Points a = normal_points(1 + random.below(3 * width), width, seed, 2.0 * random.uniform());
  const Points b = normal_points(1 + random.below(3 * width), width, seed + 1);
  const ExactSeparation result = separate_exactly(a.view(), b.view());
  RC_ASSERT(result.answer != Answer::undecided);
  RC_ASSERT(verify(a.view(), b.view(), result));
  // Starts from a third of the rows, some of which do not help.
  ExactStart start;
  for (std::size_t row = 0; row < a.view().rows(); row += 3) start.a.push_back({row, random.uniform()});
  for (std::size_t row = 0; row < b.view().rows(); row += 3) start.b.push_back({row, random.uniform()});
  for (std::size_t i = 0; i < width; ++i) start.normal.emplace_back(DoubleDouble{random.normal(), 0.0});
  const ExactSeparation started = separate_exactly(a.view(), b.view(), start);
  RC_ASSERT(started.answer == result.answer);
  RC_ASSERT(verify(a.view(), b.view(), started));
}

TEST(ExactSeparation, OneBitDecides) {
  const Points segment{{0, 0, 0, 3, 3, 3}, 3};
  EXPECT_EQ(decide({{1, 1, 1}, 3}, segment).answer, Answer::no);
  EXPECT_EQ(decide({{1, 1, 1 + 0x1p-52}, 3}, segment).answer, Answer::yes);
  EXPECT_EQ(decide({{0, 0, 0x1p-1074}, 3}, segment).answer, Answer::yes);
  EXPECT_EQ(decide({{3, 3, 3}, 3}, segment).answer, Answer::no);
  EXPECT_EQ(decide(segment, segment).answer, Answer::no);
  EXPECT_EQ(decide({{3, 3, 3 - 0x1p-51}, 3}, segment).answer, Answer::yes);
  // The weights 1/3 and 2/3 are not float64 numbers.
  const ExactSeparation third = decide({{1}, 1}, {{0, 3}, 1});
  EXPECT_EQ(third.denominator, "3");
  ASSERT_EQ(third.b.size(), 2);
  EXPECT_EQ(third.b[0].numerator, "2");
}

TEST(ExactSeparation, ColumnsOfEverySizeDoNotChangeTheAnswer) {
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    Points a = grid(4, 3, seed, 1.0);
    Points b = grid(5, 3, seed + 50, 0.0);
    const Answer plain = decide(a, b).answer;
    for (Points* points : {&a, &b}) {
      for (std::size_t i = 0; i < points->values.size(); ++i) {
        points->values[i] = std::scalbn(points->values[i], std::vector<int>{1019, -1073, 3}[i % 3]);
      }
    }
    EXPECT_EQ(decide(a, b).answer, plain) << seed;
  }
}

TEST(ExactSeparation, GapsFarBelowRoundingAreFound) {
  // The gap is e², for coordinates near one.
  const double e = 0x1p-40;
  const Points a{{0, 0, 1, 1 + e}, 2};
  const Points b{{1 - e * e, 1 - e, -1, -1 - e}, 2};
  EXPECT_NE(decide(a, b).answer, Answer::undecided);
  const Points far_a{{1e300, 1e-300}, 2};
  const Points far_b{{1e300, 0}, 2};
  EXPECT_EQ(decide(far_a, far_b).answer, Answer::yes);
}

TEST(ExactSeparation, RowsCanBeLeftOut) {
  const Points keys{{0, 0, 2, 0, 0, 2, 1, 1}, 2};
  const Points key{{1, 1}, 2};
  EXPECT_EQ(separate_exactly(key.view(), keys.view()).answer, Answer::no);
  const std::vector<std::size_t> itself{3};
  // It lies on the segment from the second key to the third one.
  const ExactSeparation between = separate_exactly(key.view(), keys.view(), {}, itself);
  EXPECT_EQ(between.answer, Answer::no);
  EXPECT_TRUE(verify(key.view(), keys.view(), between, itself));
  const std::vector<std::size_t> both{3, 2};
  const ExactSeparation apart = separate_exactly(key.view(), keys.view(), {}, both);
  EXPECT_EQ(apart.answer, Answer::yes);
  EXPECT_TRUE(verify(key.view(), keys.view(), apart, both));
  EXPECT_FALSE(verify(key.view(), keys.view(), apart));
  EXPECT_FALSE(verify(key.view(), keys.view(), between, both));
}

TEST(ExactSeparation, AGoodStartTakesNoPivots) {
  const std::size_t width = 12;
  const Points a = normal_points(30, width, 3);
  const Points b = normal_points(30, width, 4);
  const ExactSeparation found = decide(a, b);
  ASSERT_EQ(found.answer, Answer::no);
  EXPECT_GT(found.pivots, 0);
  EXPECT_EQ(found.a.size() + found.b.size(), width + 2);
  ExactStart start;
  for (const ExactShare& share : found.a) start.a.push_back({share.row, 1.0});
  for (const ExactShare& share : found.b) start.b.push_back({share.row, 1.0});
  const ExactSeparation again = separate_exactly(a.view(), b.view(), start);
  EXPECT_EQ(again.pivots, 0);
  EXPECT_EQ(again.denominator, found.denominator);
}

TEST(ExactSeparation, LimitsAreNamed) {
  const Points a = normal_points(30, 6, 5);
  const Points b = normal_points(30, 6, 6);
  const auto reason = [&](const ExactLimits& limits) {
    const ExactSeparation result = separate_exactly(a.view(), b.view(), {}, {}, limits);
    EXPECT_EQ(result.answer, Answer::undecided);
    EXPECT_FALSE(verify(a.view(), b.view(), result));
    return result.reason;
  };
  EXPECT_EQ(reason({.order = 7}), "a linear system of order 8, more than 7");
  EXPECT_EQ(reason({.pivots = 2}), "no decision after 2 pivots");
  EXPECT_NE(reason({.bits = 100}).find("bits, more than 100"), std::string::npos);
}

TEST(ExactSeparation, VerifyIsIndependent) {
  const Points a{{0, 0, 3, 3}, 2};
  const Points b{{1, 1, 5, 0}, 2};
  const ExactSeparation no = decide(a, b);
  ASSERT_EQ(no.answer, Answer::no);
  const auto refuses = [&](const ExactSeparation& forged) { return !verify(a.view(), b.view(), forged); };
  ExactSeparation forged = no;
  forged.a[0].numerator += "0";
  EXPECT_TRUE(refuses(forged));
  forged = no;
  forged.denominator = "x";
  EXPECT_TRUE(refuses(forged));
  forged = no;
  forged.b[0].row = 2;
  EXPECT_TRUE(refuses(forged));
  forged = no;
  forged.a.clear();
  EXPECT_TRUE(refuses(forged));
  forged = no;
  forged.answer = Answer::yes;
  EXPECT_TRUE(refuses(forged));
  forged.normal = {"1", "-1"};
  EXPECT_TRUE(refuses(forged));
}

TEST(ExactSeparation, VerifyRefusesEachNumberThatIsForged) {
  const Points a{{0, 0, 3, 3}, 2};
  const Points b{{1, 1, 5, 0}, 2};
  const auto refuses = [](const Points& x, const Points& y, ExactSeparation forged, const auto& change) {
    change(forged);
    return !verify(x.view(), y.view(), forged);
  };
  const ExactSeparation no = decide(a, b);
  ASSERT_EQ(no.answer, Answer::no);
  for (const char* const numerator : {"0", "-1", "x", "", "1.0"}) {
    EXPECT_TRUE(refuses(a, b, no, [&](ExactSeparation& s) { s.a[0].numerator = numerator; })) << numerator;
    EXPECT_TRUE(refuses(a, b, no, [&](ExactSeparation& s) { s.b[0].numerator = numerator; })) << numerator;
    EXPECT_TRUE(refuses(a, b, no, [&](ExactSeparation& s) { s.denominator = numerator; })) << numerator;
  }
  EXPECT_TRUE(refuses(a, b, no, [](ExactSeparation& s) { s.a[0].row = 2; }));
  EXPECT_TRUE(refuses(a, b, no, [](ExactSeparation& s) { s.b.clear(); }));
  // Weights with the right sums for two points that are not one.
  EXPECT_TRUE(refuses(a, b, no, [](ExactSeparation& s) {
    s.a = {{0, "1"}};
    s.b = {{1, "1"}};
    s.denominator = "1";
  }));
  const Points c{{4, 4}, 2};
  const ExactSeparation yes = decide(c, a);
  ASSERT_EQ(yes.answer, Answer::yes);
  EXPECT_TRUE(refuses(c, a, yes, [](ExactSeparation& s) { s.normal[1] = "one"; }));
  EXPECT_TRUE(refuses(c, a, yes, [](ExactSeparation& s) { s.normal.pop_back(); }));
  EXPECT_TRUE(refuses(c, a, yes, [](ExactSeparation& s) { s.normal = {"-1", "-1"}; }));
  EXPECT_TRUE(refuses(c, a, yes, [](ExactSeparation& s) { s.answer = Answer::undecided; }));
}

TEST(ExactSeparation, RowsAndNormalsOfTheStartNeedNotBeOfUse) {
  const Points a{{0, 0, 3, 3, 9, 9}, 2};
  const Points b{{1, 1, 5, 0, 7, 7}, 2};
  const std::vector<std::size_t> left_out{2};
  const ExactSeparation expected = separate_exactly(a.view(), b.view(), {}, left_out);
  ASSERT_EQ(expected.answer, Answer::no);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  // Rows that are not there, twice the same one, and one that is left out.
  const ExactStart rows{.a = {{0, 3.0}, {0, 2.0}}, .b = {{7, 9.0}, {2, 8.0}, {1, 1.0}}};
  const ExactStart infinite{.normal = {DoubleDouble{infinity}, DoubleDouble{1.0}}};
  const ExactStart half{.normal = {DoubleDouble{1.0, infinity}, DoubleDouble{1.0}}};
  const ExactStart narrow{.normal = {DoubleDouble{1.0}}};
  const ExactStart wrong{.normal = {DoubleDouble{-1.0}, DoubleDouble{-1.0}}};
  for (const ExactStart& start : {rows, infinite, half, narrow, wrong}) {
    const ExactSeparation result = separate_exactly(a.view(), b.view(), start, left_out);
    EXPECT_EQ(result.answer, Answer::no);
    EXPECT_TRUE(verify(a.view(), b.view(), result, left_out));
  }
  // A normal that separates needs no pivots.
  const Points c{{12, 12}, 2};
  const ExactStart right{.normal = {DoubleDouble{1.0}, DoubleDouble{1.0}}};
  const ExactSeparation apart = separate_exactly(c.view(), a.view(), right);
  EXPECT_EQ(apart.answer, Answer::yes);
  EXPECT_EQ(apart.normal, (std::vector<std::string>{"1", "1"}));
}

TEST(ExactSeparation, CoordinatesNearTheLargestDouble) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Points a = grid(4, 3, seed, 1.0);
    Points b = grid(5, 3, seed + 50, 0.0);
    for (Points* points : {&a, &b}) {
      for (double& value : points->values) value = std::clamp(value, -7.0, 7.0);
    }
    const Answer plain = decide(a, b).answer;
    // Differences of coordinates are beyond the range.
    for (Points* points : {&a, &b}) {
      for (double& value : points->values) value *= 0x1p1021;
    }
    EXPECT_EQ(decide(a, b).answer, plain) << seed;
  }
}

// The ratios of three coordinates of every separating normal are within 2^-4194 of given numbers, since rows
// differ by (N + 1, N) and by (N, N - 1) for N = 2^2097, in units of the least double.
TEST(ExactSeparation, NormalsHaveAsManyDigitsAsNeeded) {
  constexpr double n = 0x1p1023;
  constexpr double one = 0x1p-1074;
  // Coordinates 3 to 5 give each pair of rows a level of its own.
  const Points a{{n,  n,  0,  0, 0, 0,  //
                  -n, -n, 0,  1, 0, 0,  //
                  -n, 0,  -n, 0, 1, 0,  //
                  n,  0,  n,  0, 0, 1},
                 6};
  const Points b{{-one, 0,    0,   0, 0, 0,  //
                  0,    -one, 0,   1, 0, 0,  //
                  0,    0,    one, 0, 1, 0,  //
                  one,  0,    0,   0, 0, 1},
                 6};
  const ExactSeparation result = decide(a, b);
  ASSERT_EQ(result.answer, Answer::yes) << result.reason;
  std::size_t digits = 0;
  for (const std::string& entry : result.normal) digits = std::max(digits, entry.size());
  EXPECT_GT(digits, 1200U);
}

TEST(ExactSeparation, ShapesHaveToFit) {
  const std::vector<double> values = {1, 2, 3, 4};
  const auto set = [&](std::size_t rows, std::size_t width) {
    return MatrixView<const double>(values.data(), rows, width);
  };
  EXPECT_THROW((void)separate_exactly(set(0, 2), set(2, 2)), Error);
  EXPECT_THROW((void)separate_exactly(set(2, 2), set(0, 2)), Error);
  EXPECT_THROW((void)separate_exactly(set(2, 0), set(2, 0)), Error);
  EXPECT_THROW((void)separate_exactly(set(2, 2), set(2, 1)), Error);
  EXPECT_THROW((void)verify(set(2, 2), set(2, 1), ExactSeparation{}), Error);
}

TEST(ExactSeparation, BadInputIsNamed) {
  const Points a{{1, 2}, 2};
  const Points narrow{{1}, 1};
  const Points broken{{1, std::numeric_limits<double>::infinity()}, 2};
  const std::vector<std::size_t> all{0};
  const std::vector<std::size_t> absent{4};
  EXPECT_THROW(static_cast<void>(separate_exactly(a.view(), narrow.view())), Error);
  EXPECT_THROW(static_cast<void>(separate_exactly(a.view(), broken.view())), Error);
  try {
    static_cast<void>(separate_exactly(broken.view(), a.view()));
    FAIL() << "accepted an infinite row";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("row 0 of A has inf"), std::string::npos) << error.what();
  }
  EXPECT_THROW(static_cast<void>(separate_exactly(a.view(), a.view(), {}, all)), Error);
  EXPECT_THROW(static_cast<void>(separate_exactly(a.view(), a.view(), {}, absent)), Error);
}

}  // namespace
}  // namespace normscope::proof
