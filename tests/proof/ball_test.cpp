#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/proof/ball.hpp>

#include "mixed_sizes.hpp"

namespace normscope::proof {
namespace {

struct BallProblem {
  std::vector<double> rows{};
  std::vector<double> offsets{};
  std::size_t width = 0;

  [[nodiscard]] MatrixView<const double> view() const { return {rows.data(), offsets.size(), width}; }
  [[nodiscard]] BallMargin solve() const { return largest_margin(view(), offsets); }
};

BallProblem normal_problem(std::size_t rows, std::size_t width, std::uint64_t seed, double offset_size) {
  Random random(seed);
  BallProblem problem{.width = width};
  for (std::size_t i = 0; i < rows * width; ++i) problem.rows.push_back(random.normal());
  for (std::size_t i = 0; i < rows; ++i) problem.offsets.push_back(offset_size * random.normal());
  return problem;
}

TEST(Ball, KnownMargins) {
  // One row: its length. Two orthogonal rows: attained halfway between them.
  const BallProblem one{{3, 4}, {0.5}, 2};
  EXPECT_NEAR(one.solve().lower, 5.5, 1e-13);
  const BallProblem two{{1, 0, 0, 1}, {0, 0}, 2};
  EXPECT_NEAR(two.solve().lower, std::sqrt(0.5), 1e-13);
  // Opposite rows: attained at the centre, where only the offsets remain.
  const BallProblem opposite{{1, 0, -1, 0}, {0.25, 0.25}, 2};
  EXPECT_NEAR(opposite.solve().upper, 0.25, 1e-13);
  EXPECT_EQ(opposite.solve().answer, Answer::yes);
  // Positive in the plane, but not in the ball.
  const BallProblem far{{1, 0}, {-2}, 2};
  EXPECT_EQ(far.solve().answer, Answer::no);
  EXPECT_NEAR(far.solve().upper, -1.0, 1e-13);
  const BallProblem zero{{0, 0, 1, 0}, {0, 0}, 2};
  EXPECT_EQ(zero.solve().answer, Answer::no);
  EXPECT_EQ(zero.solve().upper, 0.0);
}

TEST(Ball, BoundsMeet) {
  for (const std::size_t width : {1, 2, 3, 10, 64}) {
    for (const std::size_t rows : {1, 2, 5, 50, 200}) {
      for (const double offsets : {0.0, 0.3, 3.0}) {
        const BallProblem problem = normal_problem(rows, width, width * 1000 + rows, offsets);
        const BallMargin margin = problem.solve();
        EXPECT_LE(margin.upper - margin.lower, 1e-12 * margin.scale)
            << width << " " << rows << " " << offsets << " after " << margin.iterations;
        EXPECT_TRUE(verify(problem.view(), problem.offsets, margin));
        EXPECT_NE(margin.answer, Answer::undecided) << width << " " << rows << " " << offsets;
      }
    }
  }
}

/// Rows that are nearly dependent, in one of several ways, with a largest margin near zero.
BallProblem degenerate_problem(std::uint64_t seed) {
  Random random(seed);
  const std::size_t width = 1 + random.below(12);
  const std::size_t rows = 2 + random.below(40);
  BallProblem problem = normal_problem(rows, width, seed, random.below(2) == 0 ? 0.0 : 0.5);
  const double tiny = std::pow(10.0, -static_cast<double>(random.below(16)));
  const std::uint64_t kind = seed % 5;
  const auto entry = [&](std::size_t row, std::size_t i) -> double& { return problem.rows[row * width + i]; };
  for (std::size_t row = 0; row < rows; ++row) {
    const double length = std::pow(10.0, -static_cast<double>(random.below(10)));
    if (kind == 4) problem.offsets[row] = 1e9 + 1e3 * random.normal();
    if (kind == 1) problem.offsets[row] *= length;
    for (std::size_t i = 0; i < width; ++i) {
      if (kind == 0 && row > 0) entry(row, i) = entry(0, i) + tiny * entry(row, i);
      if (kind == 1) entry(row, i) *= length;
      if (kind == 2) entry(row, i) *= std::pow(10.0, -static_cast<double>(i * seed % 11));
    }
  }
  if (kind == 3) {
    // The last row is the negative of a mean of about `width` others.
    const std::size_t others = std::min(rows - 1, width + random.below(3) - (width > 1 ? 1 : 0));
    for (std::size_t i = 0; i < width; ++i) entry(rows - 1, i) = tiny * random.normal();
    problem.offsets[rows - 1] = tiny * random.normal();
    for (std::size_t k = 0; k < others; ++k) {
      const double weight = 0.1 + random.uniform();
      for (std::size_t i = 0; i < width; ++i) entry(rows - 1, i) -= weight * entry(k, i);
      problem.offsets[rows - 1] -= weight * problem.offsets[k];
    }
  }
  return problem;
}

TEST(Ball, BoundsMeetNearDegeneracy) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const BallProblem problem = degenerate_problem(seed);
    const BallMargin margin = problem.solve();
    EXPECT_LE(margin.upper - margin.lower, 1e-12 * margin.scale) << seed << " after " << margin.iterations;
    EXPECT_NE(margin.answer, Answer::undecided) << seed;
    EXPECT_TRUE(verify(problem.view(), problem.offsets, margin)) << seed;
  }
}

/// The largest margin over a grid of points of the disc.
double brute_force(const BallProblem& problem, int turns, int rings) {
  double best = -std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < turns; ++turn) {
    const double angle = 2.0 * std::numbers::pi * turn / turns;
    for (int ring = 0; ring <= rings; ++ring) {
      const double radius = static_cast<double>(ring) / rings;
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t row = 0; row < problem.offsets.size(); ++row) {
        least = std::min(least, radius * (problem.rows[2 * row] * std::cos(angle) +
                                          problem.rows[2 * row + 1] * std::sin(angle)) +
                                    problem.offsets[row]);
      }
      best = std::max(best, least);
    }
  }
  return best;
}

TEST(Ball, AgreesWithBruteForceOverTheDisc) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const BallProblem problem = normal_problem(2 + seed % 9, 2, seed, seed % 2 == 0 ? 1.0 : 0.2);
    const BallMargin margin = problem.solve();
    const double found = brute_force(problem, 360, 60);
    EXPECT_LE(found, margin.upper + 1e-12) << seed;
    EXPECT_GE(found, margin.lower - 0.03 * margin.scale) << seed;
  }
}

/// The largest margin of three rows in the disc: it is attained in the direction of a row, at a point of the
/// circle where two rows have equal values, or where all three have.
double largest_of_three(const BallProblem& problem) {
  using Real = long double;
  const auto row = [&](std::size_t i, std::size_t j) { return static_cast<Real>(problem.rows[2 * i + j]); };
  const auto offset = [&](std::size_t i) { return static_cast<Real>(problem.offsets[i]); };
  Real best = -std::numeric_limits<Real>::infinity();
  const auto consider = [&](Real x, Real y) {
    if (!(x * x + y * y <= 1.0L + 1e-16L)) return;
    Real least = std::numeric_limits<Real>::infinity();
    for (std::size_t i = 0; i < 3; ++i) least = std::min(least, row(i, 0) * x + row(i, 1) * y + offset(i));
    best = std::max(best, least);
  };
  for (std::size_t i = 0; i < 3; ++i) {
    const Real size = std::hypot(row(i, 0), row(i, 1));
    consider(row(i, 0) / size, row(i, 1) / size);
    const std::size_t j = (i + 1) % 3;
    const Real nx = row(i, 0) - row(j, 0), ny = row(i, 1) - row(j, 1), right = offset(j) - offset(i);
    const Real square = nx * nx + ny * ny;
    const Real rest = 1.0L - right * right / square;
    if (!(rest >= 0.0L)) continue;
    for (const Real sign : {-1.0L, 1.0L}) {
      const Real along = sign * std::sqrt(rest / square);
      consider(right * nx / square - along * ny, right * ny / square + along * nx);
    }
  }
  const Real ax = row(0, 0) - row(1, 0), ay = row(0, 1) - row(1, 1), a = offset(1) - offset(0);
  const Real bx = row(1, 0) - row(2, 0), by = row(1, 1) - row(2, 1), b = offset(2) - offset(1);
  const Real determinant = ax * by - ay * bx;
  if (determinant != 0.0L) consider((a * by - ay * b) / determinant, (ax * b - a * bx) / determinant);
  return static_cast<double>(best);
}

void expect_bracketed(const BallProblem& problem, double truth) {
  const BallMargin margin = problem.solve();
  EXPECT_LE(margin.lower, truth + 1e-14);
  EXPECT_GE(margin.upper, truth - 1e-14);
  EXPECT_LE(margin.upper - margin.lower, 1e-10 * margin.scale);
  EXPECT_TRUE(verify(problem.view(), problem.offsets, margin));
}

// Rows that nearly cancel or coincide.
TEST(Ball, BoundsBracketTheMarginWhereRowsNearlyCancel) {
  const BallProblem known{{0.9999999999999923, -0.9999999999999896, 1.0000000000000078, 0.99999999999999,
                           -0.9999999999999756, -1.0000000000000102},
                          {-0.3081737866259303, 1.0123575536753933, 0.5615386722899715},
                          2};
  EXPECT_NEAR(largest_of_three(known), 0.7869481, 1e-7);
  expect_bracketed(known, largest_of_three(known));
  const BallMargin margin = known.solve();
  EXPECT_EQ(margin.answer, Answer::yes);
  EXPECT_LE(margin.upper - margin.lower, 1e-12 * margin.scale);
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Random random(seed);
    BallProblem problem{{}, {}, 2};
    const double noise = std::pow(10.0, -10.0 - 6.0 * random.uniform());
    for (int i = 0; i < 6; ++i) {
      problem.rows.push_back((random.below(2) == 0 ? 1.0 : -1.0) + noise * random.normal());
    }
    for (int i = 0; i < 3; ++i) problem.offsets.push_back(random.normal());
    SCOPED_TRACE(seed);
    expect_bracketed(problem, largest_of_three(problem));
  }
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    BallProblem problem{{}, {}, 2 + random.below(5)};
    const std::size_t rows = 2 + random.below(2 * problem.width + 2);
    const double noise = std::pow(10.0, -9.0 - 8.0 * random.uniform());
    const bool whole = random.below(2) == 0;
    for (std::size_t i = 0; i < rows * problem.width; ++i) {
      const double size = whole ? 1.0 : static_cast<double>(random.below(2));
      problem.rows.push_back((random.below(2) == 0 ? size : -size) + noise * random.normal());
    }
    for (std::size_t i = 0; i < rows; ++i) problem.offsets.push_back(random.normal());
    const BallMargin wide = problem.solve();
    EXPECT_LE(wide.upper - wide.lower, 1e-10 * wide.scale) << seed;
    EXPECT_TRUE(verify(problem.view(), problem.offsets, wide)) << seed;
  }
}

RC_GTEST_PROP(Ball, EveryAnswerIsProved, (std::uint64_t seed)) {
  Random random(seed);
  BallProblem problem =
      normal_problem(1 + random.below(40), 1 + random.below(12), seed, random.below(2) == 0 ? 0.0 : 0.5);
  if (random.below(2) == 0) {
    // Ties, equal rows and rows of zeros.
    for (double& value : problem.rows) value = std::round(value);
    for (double& value : problem.offsets) value = std::round(value);
  }
  const BallMargin margin = problem.solve();
  RC_ASSERT(margin.answer != Answer::undecided);
  RC_ASSERT(verify(problem.view(), problem.offsets, margin));
  RC_ASSERT(margin.upper - margin.lower <= 1e-12 * margin.scale + 1e-300);
}

RC_GTEST_PROP(Ball, RowsCanBeAddedLater, (std::uint64_t seed)) {
  Random random(seed);
  const BallProblem problem = normal_problem(2 + random.below(60), 1 + random.below(10), seed, 0.3);
  BallSolver solver(problem.width);
  BallSolver::State state;
  for (std::size_t row = 0; row < problem.offsets.size(); ++row) {
    solver.add(row, problem.view().row(row), problem.offsets[row]);
    if (random.below(3) == 0) {
      state = solver.solve(1e-15, -std::numeric_limits<double>::infinity());
    }
  }
  state = solver.solve(1e-15, -std::numeric_limits<double>::infinity());
  const BallMargin whole = problem.solve();
  RC_ASSERT(std::abs(state.upper - whole.upper) <= 1e-10 * whole.scale);
}

TEST(Ball, OriginInsideAHullOfManyRows) {
  // The origin is deep inside the hull, so width + 1 rows are active.
  for (const std::size_t width : {30, 128}) {
    const BallProblem inside = normal_problem(8 * width, width, width, 0.0);
    const BallMargin margin = inside.solve();
    EXPECT_EQ(margin.answer, Answer::no) << margin.upper << " " << margin.lower;
    EXPECT_EQ(margin.shares.size(), width + 1);
    EXPECT_TRUE(verify(inside.view(), inside.offsets, margin));
  }
}

TEST(Ball, VerifyIsIndependent) {
  const BallProblem problem{{1, 0, 0, 1}, {0, 0}, 2};
  const BallMargin honest = problem.solve();
  ASSERT_TRUE(verify(problem.view(), problem.offsets, honest));
  BallMargin forged = honest;
  forged.lower *= 1.001;
  EXPECT_FALSE(verify(problem.view(), problem.offsets, forged));
  forged = honest;
  forged.upper *= 0.999;
  EXPECT_FALSE(verify(problem.view(), problem.offsets, forged));
  forged = honest;
  forged.point = {1.0, 1.0};
  EXPECT_FALSE(verify(problem.view(), problem.offsets, forged));
  forged = honest;
  forged.answer = Answer::no;
  EXPECT_FALSE(verify(problem.view(), problem.offsets, forged));
  for (const std::vector<PointWeight>& weights :
       {std::vector<PointWeight>{}, {{0, -1.0}, {1, 2.0}}, {{7, 1.0}}, {{0, std::nan("")}}}) {
    EXPECT_TRUE(std::isinf(verified_upper(problem.view(), problem.offsets, weights)));
  }
}

TEST(Ball, DoubleDoubleDeterminesTheSign) {
  // The rounded products cancel to zero; the exact value is 2^-60.
  const double a = 1.0 + 0x1p-30;
  const std::vector<double> row{a, -(1.0 + 0x1p-29)};
  const std::vector<double> point{0.5 * a, 0.5};
  const std::vector<double> offsets{0.0};
  const double lower = verified_lower({row.data(), 1, 2}, offsets, point);
  EXPECT_GT(lower, 0.0);
  EXPECT_LE(lower, 0x1p-61);
}

TEST(Ball, ForgedAnswersAreFound) {
  const BallProblem yes{{1, 0, 0, 1}, {0, 0}, 2};
  const BallProblem no{{1, 0}, {-2}, 2};
  for (const BallProblem& problem : {yes, no}) {
    const BallMargin good = problem.solve();
    const auto holds = [&](const auto& change) {
      BallMargin margin = good;
      change(margin);
      return verify(problem.view(), problem.offsets, margin);
    };
    EXPECT_TRUE(holds([](BallMargin&) {}));
    EXPECT_TRUE(holds([](BallMargin& m) { m.answer = Answer::undecided; }));
    EXPECT_FALSE(
        holds([&](BallMargin& m) { m.answer = good.answer == Answer::yes ? Answer::no : Answer::yes; }));
    EXPECT_FALSE(holds([](BallMargin& m) { m.lower += 1e-6; }));
    EXPECT_FALSE(holds([](BallMargin& m) { m.upper -= 1e-6; }));
    EXPECT_FALSE(holds([](BallMargin& m) { m.point = {1.0}; }));
    EXPECT_FALSE(holds([](BallMargin& m) { m.point = {1.0, 1.0}; }));
    EXPECT_FALSE(holds([](BallMargin& m) { m.shares[0].weight = std::numeric_limits<double>::infinity(); }));
    EXPECT_FALSE(holds([](BallMargin& m) { m.shares[0].weight = -1.0; }));
    EXPECT_FALSE(holds([](BallMargin& m) { m.shares.clear(); }));
  }
}

// Among these are rows that a longer row makes dependent, ties that do not end, and weights that rounding
// leaves without a sum.
TEST(Ball, BoundsHoldForRowsOfManySizes) {
  std::vector<std::uint64_t> seeds{38437};
  for (std::uint64_t seed = 0; seed < 1000; ++seed) seeds.push_back(seed);
  for (const std::uint64_t seed : seeds) {
    const MixedRows rows = mixed_rows(seed);
    const BallMargin margin = largest_margin(rows.view(), rows.offsets);
    EXPECT_LE(margin.lower, margin.upper) << seed;
    EXPECT_TRUE(verify(rows.view(), rows.offsets, margin)) << seed;
  }
}

TEST(Ball, WeightsWithoutAFiniteSumProveNothing) {
  const BallProblem problem{{1, 0, 0, 1}, {0, 0}, 2};
  const double most = std::numeric_limits<double>::max();
  // The sum is the largest double and three quarters of its last place.
  const std::vector<PointWeight> shares{{0, most}, {1, 0x1.8p969}, {1, 0x1.8p969}};
  EXPECT_TRUE(std::isinf(verified_upper(problem.view(), problem.offsets, shares)));
  EXPECT_TRUE(std::isinf(verified_upper(problem.view(), problem.offsets, {{0, 0.0}})));
  // Weights are divided by their sum.
  EXPECT_NEAR(verified_upper(problem.view(), problem.offsets, {{0, 0.5 * most}}), 1.0, 1e-14);
}

TEST(Ball, ShapesHaveToFit) {
  const std::vector<double> values = {1, 2, 3, 4};
  const auto refused = [&](std::size_t rows, std::size_t width, std::size_t offsets) {
    const MatrixView<const double> view(values.data(), rows, width);
    EXPECT_THROW((void)largest_margin(view, std::span(values).first(offsets)), Error);
  };
  refused(0, 2, 0);
  refused(2, 0, 2);
  refused(2, 2, 1);
}

TEST(Ball, BadInputIsNamed) {
  const std::vector<double> rows{1, 2};
  const std::vector<double> offsets{0};
  const std::vector<double> broken{std::nan("")};
  EXPECT_THROW(static_cast<void>(largest_margin({rows.data(), 2, 1}, offsets)), Error);
  EXPECT_THROW(static_cast<void>(largest_margin({rows.data(), 1, 2}, broken)), Error);
  EXPECT_THROW(static_cast<void>(largest_margin({rows.data(), 0, 2}, {})), Error);
  const std::vector<double> second{1, 2, std::numeric_limits<double>::infinity(), 0};
  const std::vector<double> zeros{0, 0};
  try {
    static_cast<void>(largest_margin({second.data(), 2, 2}, zeros));
    FAIL() << "accepted an infinite row";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Argument);
    EXPECT_NE(std::string(error.what()).find("row 1 is not finite"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace normscope::proof
