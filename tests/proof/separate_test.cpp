#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/proof/separate.hpp>

#include "mixed_sizes.hpp"
#include "points.hpp"

namespace normscope::proof {
namespace {

TEST(Separate, ExclusiveOrIsNotSeparable) {
  const Points a{{0, 0, 1, 1}, 2};
  const Points b{{0, 1, 1, 0}, 2};
  const Separation result = separate(a.view(), b.view());
  EXPECT_EQ(to_string(result.answer), "no");
  EXPECT_LE(result.residual, 1e-15);
  EXPECT_EQ(result.a.size() + result.b.size(), 4);
  EXPECT_TRUE(verify(a.view(), b.view(), result));
}

TEST(Separate, MarginIsTheLargest) {
  const Points a{{3, 1, 3, -7, 8, 0}, 2};
  const Points b{{0, 0, -1, 5, -2, -4}, 2};
  Separation result = separate(a.view(), b.view());
  EXPECT_EQ(result.answer, Answer::yes);
  EXPECT_NEAR(result.margin, 3.0, 1e-14);
  EXPECT_NEAR(result.offset, 1.5, 1e-14);
  // Without a closed form: the distance of the hulls is at most that of any two of their points.
  for (const std::size_t width : {2, 10, 60}) {
    const Points left = normal_points(80, width, 1, 12.0);
    const Points right = normal_points(50, width, 2);
    result = separate(left.view(), right.view());
    ASSERT_EQ(result.answer, Answer::yes) << width;
    EXPECT_LE(result.margin, result.residual * (1.0 + 1e-15));
    EXPECT_GE(result.margin, result.residual * (1.0 - 1e-9));
    EXPECT_TRUE(verify(left.view(), right.view(), result));
  }
}

TEST(Separate, TouchingAndDuplicateRowsMeet) {
  const Points a{{0, 0, 2, 0}, 2};
  const Points touching{{1, 0, 1, 5}, 2};
  const Points duplicate{{2, 0, 9, 9}, 2};
  for (const Points& b : {touching, duplicate}) {
    const Separation result = separate(a.view(), b.view());
    EXPECT_EQ(result.answer, Answer::no);
    EXPECT_TRUE(verify(a.view(), b.view(), result));
  }
  const Points one{{5, 5, 5, 5}, 2};
  EXPECT_EQ(separate(one.view(), one.view()).answer, Answer::no);
}

TEST(Separate, FindsATinyMarginFarFromTheOrigin) {
  const double gap = 0x1p-20;
  const Points a{{1e6 + gap, 0, 1e6 + gap, 1, 1e6 + 1, -3}, 2};
  const Points b{{1e6, 0, 1e6, 1, 1e6 - 2, 0.5}, 2};
  const Separation result = separate(a.view(), b.view());
  EXPECT_EQ(result.answer, Answer::yes);
  EXPECT_NEAR(result.margin, gap, 1e-8);
  EXPECT_TRUE(verify(a.view(), b.view(), result));
}

RC_GTEST_PROP(Separate, EveryAnswerIsProved, (std::uint64_t seed)) {
  Random random(seed);
  const std::size_t width = 1 + random.below(12);
  // From surely separable (few rows) to surely not (Cover: more than twice the width).
  Points a = normal_points(1 + random.below(3 * width), width, seed);
  Points b = normal_points(1 + random.below(3 * width), width, seed + 1);
  const bool rounded = random.below(2) == 0;
  if (rounded) {
    for (Points* points : {&a, &b}) {
      for (double& value : points->values) value = std::round(value);
    }
  }
  const Separation result = separate(a.view(), b.view());
  RC_ASSERT(result.answer != Answer::undecided);
  RC_ASSERT(verify(a.view(), b.view(), result));
  if (!rounded && a.view().rows() + b.view().rows() <= width + 1) RC_ASSERT(result.answer == Answer::yes);
}

RC_GTEST_PROP(Separate, PlantedHyperplanesAreFound, (std::uint64_t seed)) {
  Random random(seed);
  const std::size_t width = 1 + random.below(20);
  const std::vector<double> normal = normal_points(1, width, seed).values;
  const double gap = std::exp(-10.0 * random.uniform());
  Points a{.width = width};
  Points b{.width = width};
  for (int row = 0; row < 60; ++row) {
    std::vector<double> x = normal_points(1, width, seed + 2 + static_cast<std::uint64_t>(row)).values;
    double along = 0.0;
    for (std::size_t i = 0; i < width; ++i) along += x[i] * normal[i];
    const double length = euclidean_norm(normal);
    const double push = (along >= 0.0 ? gap : -gap) / length;
    for (std::size_t i = 0; i < width; ++i) x[i] += push * normal[i] / length;
    std::vector<double>& values = along >= 0.0 ? a.values : b.values;
    values.insert(values.end(), x.begin(), x.end());
  }
  RC_PRE(!a.values.empty() && !b.values.empty());
  const Separation result = separate(a.view(), b.view());
  RC_ASSERT(result.answer == Answer::yes);
  RC_ASSERT(result.margin >= 2.0 * gap / euclidean_norm(normal) * (1.0 - 1e-9));
}

TEST(Separate, SlabsAreSeparatedHoweverThin) {
  for (const double width : {1e-5, 1e-7, 1e-9, 1e-11, 1e-13}) {
    Points a{.width = 4};
    Points b{.width = 4};
    Random random(3);
    for (int row = 0; row < 200; ++row) {
      const double x = random.normal();
      const double y = random.normal();
      const double z = random.normal();
      Points& set = row % 2 == 0 ? a : b;
      const double at = row % 2 == 0 ? width / 2 : -width / 2;
      // The plane's normal is (1, 1, 1, 1)/2 to the last bit.
      const double plane[] = {x + y, x - y, z - x, -z - x};
      for (const double value : plane) set.values.push_back(value + at / 2);
    }
    const Separation result = separate(a.view(), b.view());
    ASSERT_EQ(result.answer, Answer::yes) << width;
    EXPECT_NEAR(result.margin, width, 4e-15);
    EXPECT_TRUE(verify(a.view(), b.view(), result));
  }
}

TEST(Separate, SegmentsThatCrossFarAwayMeet) {
  for (const double far : {1e4, 1e8, 1e12}) {
    const Points a{{far, far, far + 3, far + 1}, 2};
    const Points b{{far + 1, far + 1, far + 2, far - 7}, 2};
    const Separation result = separate(a.view(), b.view());
    EXPECT_EQ(result.answer, Answer::no) << far;
    EXPECT_TRUE(verify(a.view(), b.view(), result));
  }
}

TEST(Separate, ColumnsOfAnySizeDoNotChangeTheAnswer) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Points a = normal_points(12, 5, 2 * seed, 1.2);
    Points b = normal_points(12, 5, 2 * seed + 1);
    const Answer plain = separate(a.view(), b.view()).answer;
    ASSERT_NE(plain, Answer::undecided);
    const int exponents[] = {20, -15, 0, 7, -10};
    for (Points* points : {&a, &b}) {
      for (std::size_t i = 0; i < points->values.size(); ++i) {
        points->values[i] = std::scalbn(points->values[i], exponents[i % 5]);
      }
    }
    const Separation result = separate(a.view(), b.view());
    EXPECT_EQ(result.answer, plain) << seed;
    EXPECT_TRUE(verify(a.view(), b.view(), result));
  }
}

TEST(Separate, ValuesOfAnySizeGiveTheSameDigits) {
  for (const double shift : {0.0, 9.0}) {
    const Points a = normal_points(20, 3, 5, shift);
    const Points b = normal_points(20, 3, 6);
    const Separation plain = separate(a.view(), b.view());
    for (const int exponent : {-150, -60, 60, 95}) {
      Points far_a = a;
      Points far_b = b;
      for (double& value : far_a.values) value = std::scalbn(value, exponent);
      for (double& value : far_b.values) value = std::scalbn(value, exponent);
      const Separation scaled = separate(far_a.view(), far_b.view());
      EXPECT_EQ(scaled.answer, plain.answer);
      EXPECT_EQ(scaled.normal, plain.normal);
      EXPECT_EQ(scaled.margin, std::scalbn(plain.margin, exponent));
      EXPECT_EQ(scaled.residual, std::scalbn(plain.residual, exponent));
      EXPECT_EQ(scaled.offset, std::scalbn(plain.offset, exponent));
    }
  }
  const Points flat_a{{1e30, 1e-60}, 2};
  const Points flat_b{{1e30, 0}, 2};
  EXPECT_NEAR(separate(flat_a.view(), flat_b.view()).margin, 1e-60, 1e-74);
}

TEST(Separate, MarginsAreProvedForNormalsOfEverySize) {
  const Points one{{1}, 1};
  const Points zero{{0}, 1};
  EXPECT_LE(verified_margin(zero.view(), zero.view(), {1.0}), 0.0);
  for (const double length : {1e-200, 1.0, 1e200}) {
    EXPECT_NEAR(verified_margin(one.view(), zero.view(), {length}), 1.0, 1e-14) << length;
    EXPECT_NEAR(verified_margin(zero.view(), one.view(), {length}), -1.0, 1e-14) << length;
  }
}

TEST(Separate, OffsetsAreFinite) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Points high{{3}, 1};
  const Points low{{1}, 1};
  Separation result = separate(high.view(), low.view());
  ASSERT_TRUE(verify(high.view(), low.view(), result));
  for (const double offset : {infinity, -infinity}) {
    result.offset = offset;
    EXPECT_FALSE(verify(high.view(), low.view(), result)) << offset;
  }
}

RC_GTEST_PROP(Separate, AgreesWithTheExactDecision, (std::uint64_t seed)) {
  const IllConditionedPair sets = ill_conditioned_pair(seed);
  Separation result = separate(sets.a.view(), sets.b.view());
  RC_ASSERT(verify(sets.a.view(), sets.b.view(), result));
  const Answer found = result.answer;
  decide_exactly(sets.a.view(), sets.b.view(), result);
  RC_ASSERT(result.answer != Answer::undecided);
  RC_ASSERT(verify(sets.a.view(), sets.b.view(), result));
  RC_ASSERT(found == Answer::undecided || found == result.answer);
}

TEST(Separate, SetsCloserThanRoundingAreNotCalledMeeting) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    Points a = normal_points(2 + random.below(5), 3, seed + 1);
    Points b = normal_points(2 + random.below(5), 3, seed + 2);
    const double half = std::scalbn(1.0, -52 - static_cast<int>(random.below(5)));
    for (Points* points : {&a, &b}) {
      for (std::size_t i = 0; i < points->values.size(); i += 3) {
        double* x = points->values.data() + i;
        x[0] = points == &a ? half : -half;
        const double turned[] = {0.36 * x[0] - 0.48 * x[1] + 0.8 * x[2], 0.8 * x[0] + 0.6 * x[1],
                                 -0.48 * x[0] + 0.64 * x[1] + 0.6 * x[2]};
        std::copy(turned, turned + 3, x);
      }
    }
    Separation result = separate(a.view(), b.view());
    const Answer found = result.answer;
    decide_exactly(a.view(), b.view(), result);
    EXPECT_TRUE(found == Answer::undecided || found == result.answer) << seed;
  }
}

RC_GTEST_PROP(Separate, MarginsOfIllConditionedSets, (std::uint64_t seed)) {
  const IllConditionedPair sets = ill_conditioned_pair(seed);
  const Separation result = separate(sets.a.view(), sets.b.view());
  RC_PRE(result.answer == Answer::yes);
  RC_ASSERT(result.margin <= result.residual);
  RC_ASSERT(result.margin >= result.residual * (1.0 - 1e-9) - 0x1p-46 * result.scale);
}

TEST(Separate, ExactAnswersComeWithTheirProofs) {
  // A third of a diagonal is not representable: its rounded value lies on one side or the other.
  const Points a{{0, 0, 1, 1, 3, 3}, 2};
  const double third = 1.0 / 3.0;
  for (const double y : {third, std::nextafter(third, 0.0), std::nextafter(third, 1.0)}) {
    const Points b{{third, y, third, 5.0}, 2};
    Separation result = separate(a.view(), b.view());
    decide_exactly(a.view(), b.view(), result);
    EXPECT_EQ(result.answer, y <= third ? Answer::no : Answer::yes);
    EXPECT_TRUE(verify(a.view(), b.view(), result));
    result.answer = result.answer == Answer::no ? Answer::yes : Answer::no;
    EXPECT_FALSE(verify(a.view(), b.view(), result));
  }
}

TEST(Separate, ManyRowsOfManyFeatures) {
  // Rows in general position, fewer than features, are separable however they are labelled.
  const Points wide_a = normal_points(100, 300, 5);
  const Points wide_b = normal_points(100, 300, 6);
  const Separation wide = separate(wide_a.view(), wide_b.view());
  EXPECT_EQ(wide.answer, Answer::yes);
  EXPECT_TRUE(verify(wide_a.view(), wide_b.view(), wide));
  const Points tall_a = normal_points(2000, 20, 7);
  const Points tall_b = normal_points(2000, 20, 8);
  const Separation tall = separate(tall_a.view(), tall_b.view());
  EXPECT_EQ(tall.answer, Answer::no);
  EXPECT_TRUE(verify(tall_a.view(), tall_b.view(), tall));
}

TEST(Separate, BoundsMeetWithManyActiveRows) {
  // Too many active rows for twice the precision everywhere.
  const std::size_t width = 170;
  const Points a = normal_points(450, width, 9);
  const Points b = normal_points(450, width, 10);
  const Separation result = separate(a.view(), b.view());
  EXPECT_EQ(result.answer, Answer::no);
  EXPECT_GT(result.a.size() + result.b.size(), width);
  EXPECT_LE(result.residual, 2e-16 * result.scale);
}

TEST(Separate, VerifyIsIndependent) {
  const Points a{{3, 1, 4, -1}, 2};
  const Points b{{0, 0, -1, 2}, 2};
  const Separation yes = separate(a.view(), b.view());
  ASSERT_TRUE(verify(a.view(), b.view(), yes));
  Separation forged = yes;
  forged.margin *= 1.001;
  EXPECT_FALSE(verify(a.view(), b.view(), forged));
  forged = yes;
  forged.offset = 5.0;
  EXPECT_FALSE(verify(a.view(), b.view(), forged));
  forged = yes;
  forged.normal = {0.0, 1.0};
  EXPECT_FALSE(verify(a.view(), b.view(), forged));
  forged = yes;
  forged.answer = Answer::no;
  EXPECT_FALSE(verify(a.view(), b.view(), forged));
  for (const std::vector<PointWeight>& weights :
       {std::vector<PointWeight>{}, {{0, -1.0}, {1, 2.0}}, {{7, 1.0}}, {{0, std::nan("")}}}) {
    EXPECT_TRUE(std::isinf(verified_residual(a.view(), b.view(), weights, {{0, 1.0}})));
  }
  EXPECT_LT(verified_margin(a.view(), b.view(), {0.0, 0.0}), 0.0);
  EXPECT_LT(verified_margin(a.view(), b.view(), {std::nan(""), 0.0}), 0.0);
}

TEST(Separate, VerifyRefusesEachPartThatIsForged) {
  const Points a{{3, 1, 4, -1}, 2};
  const Points b{{0, 0, -1, 2}, 2};
  const Separation yes = separate(a.view(), b.view());
  ASSERT_EQ(yes.answer, Answer::yes);
  const auto accepts = [](const Points& x, const Points& y, Separation forged, const auto& change) {
    change(forged);
    return verify(x.view(), y.view(), forged);
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(accepts(a, b, yes, [](Separation& s) { s.offset = -5.0; }));
  EXPECT_FALSE(accepts(a, b, yes, [](Separation& s) { s.offset = std::nan(""); }));
  EXPECT_FALSE(accepts(a, b, yes, [](Separation& s) { s.normal.pop_back(); }));
  EXPECT_FALSE(accepts(a, b, yes, [](Separation& s) { s.normal.push_back(0.0); }));
  EXPECT_FALSE(accepts(a, b, yes, [&](Separation& s) { s.normal[0] = infinity; }));
  // A common point to 1e-13 of the largest column, which the second column's extent does not allow.
  const Points flat{{0, 0, 1, 0}, 2};
  const Points near{{0, 1e-13, 1, 1e-13}, 2};
  Separation no{.answer = Answer::no,
                .a = {{0, 0.5}, {1, 0.5}},
                .b = {{0, 0.5}, {1, 0.5}},
                .residual = 1.1e-13,
                .scale = 0.5,
                .tolerance = 1e-12};
  EXPECT_FALSE(verify(flat.view(), near.view(), no));
  // Points of the hulls that are one.
  EXPECT_TRUE(accepts(flat, flat, no, [](Separation& s) { s.residual = 1e-15; }));
  EXPECT_FALSE(accepts(flat, flat, no, [](Separation& s) { s.residual = -1.0; }));
  EXPECT_FALSE(accepts(flat, flat, no, [](Separation& s) { s.a.pop_back(); }));
  EXPECT_FALSE(accepts(flat, flat, no, [](Separation& s) { s.a[0].weight = 0.25; }));
  // A length that the scale allows, in weights that do not sum to 1.
  EXPECT_TRUE(accepts(flat, flat, no, [](Separation& s) { s.a[0].weight = s.a[1].weight = 2.0; }));
}

TEST(Separate, VerifyAsksForTheExactProof) {
  const Points a{{0, 0, 1, 1}, 2};
  const Points b{{0, 1, 1, 0}, 2};
  Separation result = separate(a.view(), b.view());
  ASSERT_EQ(result.answer, Answer::no);
  // Beyond a limit nothing is decided, and the answer and its proof in doubles remain.
  decide_exactly(a.view(), b.view(), result, {.order = 1});
  ASSERT_TRUE(result.exact.has_value());
  EXPECT_EQ(result.exact->answer, Answer::undecided);
  EXPECT_EQ(result.answer, Answer::no);
  EXPECT_TRUE(verify(a.view(), b.view(), result));
  result.residual = -1.0;
  EXPECT_FALSE(verify(a.view(), b.view(), result));
  // With integers only these count.
  decide_exactly(a.view(), b.view(), result);
  EXPECT_TRUE(verify(a.view(), b.view(), result));
  result.exact->a[0].numerator = "7";
  EXPECT_FALSE(verify(a.view(), b.view(), result));
}

TEST(Separate, InvalidWeightsAndNormalsProveNothing) {
  const Points a{{3, 1, 4, -1}, 2};
  const Points b{{0, 0, -1, 2}, 2};
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double most = std::numeric_limits<double>::max();
  const std::vector<PointWeight> one{{0, 1.0}};
  // The sum is the largest double and three quarters of its last place.
  const std::vector<PointWeight> beyond{{0, most}, {1, 0x1.8p969}, {1, 0x1.8p969}};
  EXPECT_TRUE(std::isinf(verified_residual(a.view(), b.view(), beyond, one)));
  EXPECT_TRUE(std::isinf(verified_residual(a.view(), b.view(), one, beyond)));
  EXPECT_TRUE(std::isinf(verified_residual(a.view(), b.view(), one, {{0, infinity}})));
  EXPECT_NEAR(verified_residual(a.view(), b.view(), one, {{0, 2.0}}), std::sqrt(10.0), 1e-12);
  for (const std::vector<double>& normal :
       {std::vector<double>{}, {1.0}, {1.0, 0.0, 0.0}, {infinity, 0.0}, {1.0, -infinity}}) {
    EXPECT_EQ(verified_margin(a.view(), b.view(), normal), -infinity);
  }
  // Rows that are not finite.
  for (const double broken : {infinity, std::nan("")}) {
    const Points row{{broken, 1}, 2};
    EXPECT_EQ(verified_margin(row.view(), b.view(), {1.0, 0.0}), -infinity) << broken;
    EXPECT_EQ(verified_margin(b.view(), row.view(), {1.0, 0.0}), -infinity) << broken;
    EXPECT_EQ(verified_margin(row.view(), {b.values.data(), 0, 2}, {1.0, 0.0}), -infinity) << broken;
  }
}

// In many columns a distance may be below the tolerance in each of them and above it in all together.
TEST(Separate, ACommonPointIsWithinTheToleranceOfTheScale) {
  const Points a = normal_points(250, 60, 31);
  const Points b = normal_points(250, 60, 32);
  std::size_t met = 0;
  for (double tolerance = 1e-14; tolerance > 1e-18; tolerance *= 0.6) {
    const Separation result = separate(a.view(), b.view(), tolerance, 1);
    EXPECT_NE(result.answer, Answer::yes) << tolerance;
    EXPECT_TRUE(verify(a.view(), b.view(), result)) << tolerance;
    if (result.answer != Answer::no) continue;
    ++met;
    EXPECT_LE(result.residual, tolerance * result.scale);
  }
  EXPECT_GT(met, 0U);
}

TEST(Separate, RowsOfManySizesAreNotMistaken) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const MixedRows rows = mixed_rows(seed);
    const std::size_t count = rows.view().rows();
    if (count < 2) continue;
    const MatrixView<const double> a(rows.values.data(), count / 2, rows.width);
    const MatrixView<const double> b(a.data() + count / 2 * rows.width, count - count / 2, rows.width);
    Separation result = separate(a, b, 1e-12, 1);
    EXPECT_TRUE(verify(a, b, result)) << seed;
    const Answer found = result.answer;
    decide_exactly(a, b, result, {}, 1);
    EXPECT_TRUE(verify(a, b, result)) << seed;
    EXPECT_TRUE(found == Answer::undecided || found == result.answer) << seed;
  }
}

TEST(Separate, AnswersHaveNames) {
  EXPECT_EQ(to_string(Answer::yes), "yes");
  EXPECT_EQ(to_string(Answer::no), "no");
  EXPECT_EQ(to_string(Answer::undecided), "undecided");
}

TEST(Separate, SetsHaveRowsOfOneWidth) {
  const std::vector<double> values = {1, 2, 3, 4};
  const auto set = [&](std::size_t rows, std::size_t width) {
    return MatrixView<const double>(values.data(), rows, width);
  };
  EXPECT_THROW((void)separate(set(0, 2), set(2, 2)), Error);
  EXPECT_THROW((void)separate(set(2, 2), set(0, 2)), Error);
  EXPECT_THROW((void)separate(set(2, 0), set(2, 0)), Error);
  EXPECT_THROW((void)separate(set(2, 2), set(2, 1)), Error);
}

TEST(Separate, BadInputIsNamed) {
  const Points a{{1, 2}, 2};
  const Points narrow{{1}, 1};
  const Points broken{{1, std::numeric_limits<double>::infinity()}, 2};
  EXPECT_THROW(static_cast<void>(separate(a.view(), narrow.view())), Error);
  EXPECT_THROW(static_cast<void>(separate(a.view(), broken.view())), Error);
  EXPECT_THROW(static_cast<void>(separate(a.view(), {a.values.data(), 0, 2})), Error);
  const auto message = [](const Points& x, const Points& y) -> std::string {
    try {
      static_cast<void>(separate(x.view(), y.view()));
      return "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Argument);
      return error.what();
    }
  };
  EXPECT_NE(message(broken, a).find("row 0 of A has inf"), std::string::npos) << message(broken, a);
  EXPECT_NE(message(a, broken).find("row 0 of B has inf"), std::string::npos) << message(a, broken);
  const Points large{{1, 1e31}, 2};
  EXPECT_NE(message(a, large).find("row 0 of B has 1e+31"), std::string::npos) << message(a, large);
  const Points near{{1, 2 + 0x1p-51}, 2};
  EXPECT_EQ(message(a, near), "accepted");
  const Points tiny{{1e-61, 0}, 2};
  const Points zero{{0, 0}, 2};
  EXPECT_NE(message(tiny, zero).find("column 0 extends over 1e-61"), std::string::npos)
      << message(tiny, zero);
}

}  // namespace
}  // namespace normscope::proof
