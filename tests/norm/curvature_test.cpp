#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/norm/curvature.hpp>
#include <normscope/norm/norm.hpp>

#include "support/dual.hpp"
#include "support/norms.hpp"

namespace normscope::norm {
namespace {

constexpr std::size_t width = 12;
const std::vector<NormKind> kinds = test::normalizing_kinds();

double measure(const NormSpec& spec, const std::vector<double>& x) {
  return curvature(spec, {x.data(), 1, spec.width})[0];
}

/// H by automatic differentiation (second-order dual numbers).
double automatic(const NormSpec& spec, const std::vector<double>& x) {
  CompensatedSum squares;
  for (std::size_t j = 0; j < x.size(); ++j) {
    for (std::size_t k = 0; k < x.size(); ++k) {
      std::vector<test::Dual> duals(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) duals[i].value = x[i];
      duals[j].a = 1.0;
      duals[k].b = 1.0;
      for (const test::Dual& y : test::normalized(spec, duals)) squares.add(y.ab * y.ab);
    }
  }
  return squares.value();
}

double ratio(NormSpec spec, std::size_t groups, const std::vector<double>& x) {
  spec.groups = 1;
  const double plain = measure(spec, x);
  spec.groups = groups;
  return measure(spec, x) / plain;
}

TEST(Curvature, IsThatOfAutomaticDoubleDerivatives) {
  for (const NormSpec& spec : test::norms_of_every_kind(width)) {
    const std::vector<double> x = test::random_values(width, 21);
    EXPECT_NEAR(measure(spec, x) / automatic(spec, x), 1.0, 1e-11) << test::describe(spec);
  }
}

TEST(Curvature, IsIndependentOfBlockMeans) {
  const std::size_t every_count[] = {1, 2, 3, 4};
  for (const NormSpec& spec : test::norms_of_every_kind(width)) {
    if (!spec.centers()) continue;
    // Shifts that round nothing: of the row, or of each block by its own.
    const std::vector<double> x = test::random_values(width, 21);
    std::vector<double> near(width), far(width), apart(width);
    for (std::size_t i = 0; i < width; ++i) {
      near[i] = std::round(x[i] * 1024.0) / 1024.0;
      far[i] = near[i] + 0x1.0000001p40;
      apart[i] = near[i] + (i / spec.block_width() == 0 ? 0x1.0000001p40 : -0x1.8p39);
    }
    EXPECT_NEAR(measure(spec, far) / measure(spec, near), 1.0, 1e-11) << test::describe(spec);
    // As when the block is merged from smaller cells.
    for (const std::vector<double>& row : {far, apart}) {
      double together[4];
      curvature_of_groups(spec, {row.data(), 1, width}, every_count, {together, 1, 4});
      EXPECT_NEAR(together[spec.groups - 1] / measure(spec, near), 1.0, 1e-11) << test::describe(spec);
    }
  }
}

TEST(Curvature, IsThatOfCentralDifferences) {
  for (const NormSpec& spec : test::norms_of_every_kind(width)) {
    const std::vector<double> x = test::random_values(width, 22);
    const double step = 1e-4;
    const auto value = [&](std::size_t j, double a, std::size_t k, double b) {
      std::vector<double> moved(x);
      moved[j] += a;
      moved[k] += b;
      forward(spec, {moved.data(), 1, width}, {moved.data(), 1, width});
      return moved;
    };
    double squares = 0.0;
    for (std::size_t j = 0; j < width; ++j) {
      for (std::size_t k = 0; k < width; ++k) {
        const std::vector<double> pp = value(j, step, k, step);
        const std::vector<double> pm = value(j, step, k, -step);
        const std::vector<double> mp = value(j, -step, k, step);
        const std::vector<double> mm = value(j, -step, k, -step);
        for (std::size_t i = 0; i < width; ++i) {
          squares += std::pow((pp[i] - pm[i] - mp[i] + mm[i]) / (4.0 * step * step), 2);
        }
      }
    }
    EXPECT_NEAR(measure(spec, x) / squares, 1.0, 1e-4) << test::describe(spec);
  }
}

TEST(Curvature, HasThePlainClosedForms) {
  const std::vector<double> x = test::random_values(96, 23, 0.3);
  const double n = 96.0;
  const double variance = sum_of_squares(x, mean(x)) / n;
  const double square = sum_of_squares(x);
  const auto plain = [&](NormKind kind) { return measure({.kind = kind, .width = 96, .eps = 0.0}, x); };
  EXPECT_NEAR(plain(NormKind::layer) * n * variance * variance / (3.0 * (n - 2.0)), 1.0, 1e-13);
  EXPECT_NEAR(plain(NormKind::rms) * square * square / n / (3.0 * (n - 1.0)), 1.0, 1e-13);
  EXPECT_NEAR(plain(NormKind::spherical) * square * square / (3.0 * (n - 1.0)), 1.0, 1e-13);
}

TEST(Curvature, OnePassOverGroupCountsIsManyPasses) {
  const std::vector<std::size_t> groups{1, 2, 3, 4, 6, 12, 24, 48};
  for (const char* shape : {"ordinary", "wide", "zeros"}) {
    for (const NormKind kind : kinds) {
      for (const double eps : {0.0, 1e-3}) {
        NormSpec spec{.kind = kind, .width = 96, .eps = eps, .gain = test::random_gain(96, shape, 5)};
        const std::vector<double> x = test::random_values(std::size_t{40} * 96, 24, 2.0);
        std::vector<double> measures(40 * groups.size());
        curvature_of_groups(spec, {x.data(), 40, 96}, groups, {measures.data(), 40, groups.size()}, 3);
        for (std::size_t k = 0; k < groups.size(); ++k) {
          spec.groups = groups[k];
          const std::vector<double> alone = curvature(spec, {x.data(), 40, 96}, 1);
          for (std::size_t row = 0; row < 40; ++row) {
            const double together = measures[row * groups.size() + k];
            EXPECT_NEAR(together, alone[row], 1e-11 * alone[row]) << test::describe(spec);
          }
        }
      }
    }
  }
}

TEST(Curvature, BoundIsMetWithEqualityOnRepeatedGroups) {
  for (const NormKind kind : kinds) {
    for (const std::size_t groups : {1, 2, 4, 8, 16}) {
      const std::vector<double> block = test::random_values(64 / groups, 25);
      std::vector<double> x;
      for (std::size_t i = 0; i < 64; ++i) x.push_back(block[i % block.size()]);
      const NormSpec spec{.kind = kind, .width = 64, .groups = groups, .eps = 0.0};
      const std::optional<double> bound = curvature_ratio_bound(spec);
      ASSERT_TRUE(bound);
      EXPECT_NEAR(ratio(spec, groups, x) / *bound, 1.0, 1e-12) << test::describe(spec);
    }
  }
  const NormSpec fours{.width = 64, .groups = 16, .eps = 0.0};
  EXPECT_NEAR(*curvature_ratio_bound(fours), 16.0 * 32.0 / 62.0, 1e-14);
}

RC_GTEST_PROP(Curvature, RatioIsNeverBelowTheBound, (std::uint64_t seed)) {
  Random random(seed);
  const NormKind kind = kinds[random.below(kinds.size())];
  const std::size_t groups = 1 + random.below(5);
  const std::size_t block = 3 + random.below(6);
  NormSpec spec{.kind = kind, .width = groups * block, .groups = groups, .eps = 0.0};
  spec.gain.assign(spec.width, random.normal());
  // Steps of any size away from repeated groups, where the bound is attained.
  const double step = std::exp(-12.0 + 14.0 * random.uniform());
  const std::vector<double> cell = test::random_values(block, seed);
  std::vector<double> x;
  for (std::size_t i = 0; i < spec.width; ++i) x.push_back(cell[i % block] + step * random.normal());
  RC_ASSERT(ratio(spec, groups, x) >= *curvature_ratio_bound(spec) * (1.0 - 1e-11));
}

TEST(Curvature, BoundIsGivenOnlyWhereItIsProved) {
  EXPECT_FALSE(curvature_ratio_bound({.width = 12, .groups = 6, .eps = 0.0}));
  EXPECT_FALSE(curvature_ratio_bound({.width = 12, .groups = 2, .eps = 1e-5}));
  EXPECT_FALSE(curvature_ratio_bound({.width = 3, .eps = 0.0, .gain = {1, 2, 1}}));
  EXPECT_FALSE(curvature_ratio_bound({.width = 3, .eps = 0.0, .gain = {0, 0, 0}}));
  EXPECT_TRUE(curvature_ratio_bound({.width = 3, .eps = 0.0, .gain = {1, -1, 1}}));
  EXPECT_FALSE(curvature_ratio_bound({.kind = NormKind::rms, .width = 4, .groups = 4, .eps = 0.0}));
}

TEST(Curvature, GroupsOfTwoAreFlat) {
  const std::vector<double> x = test::random_values(width, 26);
  EXPECT_EQ(measure({.width = width, .groups = 6, .eps = 0.0}, x), 0.0);
  EXPECT_GT(measure({.width = width, .groups = 6, .eps = 0.1}, x), 0.0);
  EXPECT_EQ(measure({.width = width, .groups = width, .eps = 0.1}, x), 0.0);
}

TEST(Curvature, IsInfiniteWhereNothingDeviatesWithoutEps) {
  const std::vector<double> x{0.1, 0.1, 0.1, 1.0, 2.0, 4.0};
  EXPECT_TRUE(std::isinf(measure({.width = 6, .groups = 2, .eps = 0.0}, x)));
  EXPECT_TRUE(std::isfinite(measure({.width = 6, .groups = 1, .eps = 0.0}, x)));
  EXPECT_TRUE(std::isfinite(measure({.width = 6, .groups = 2, .eps = 1e-5}, x)));
  EXPECT_EQ(measure({.width = 3, .eps = 1e-5}, {7, 7, 7}), 0.0);
}

TEST(Curvature, ComparisonCountsTheRowsThatHaveBothMeasures) {
  const std::vector<double> x{0.1, 0.1, 0.1, 1.0, 2.0,  4.0,  // a block without deviation
                              3.0, 1.0, 2.0, 3.0, 1.0,  2.0,  // repeated: the bound itself
                              1.0, 2.0, 4.0, 9.0, -3.0, 5.0,  //
                              7.0, 7.0, 7.0, 7.0, 7.0,  7.0};
  const NormSpec spec{.width = 6, .eps = 0.0};
  const std::vector<std::size_t> groups = curving_group_counts(spec.kind, spec.width);
  EXPECT_EQ(groups, (std::vector<std::size_t>{1, 2}));
  const std::vector<GroupCurvature> results = compare_groups(spec, {x.data(), 4, 6}, groups);
  EXPECT_EQ(results[0].rows, 3);
  EXPECT_EQ(results[0].ratio, 1.0);
  EXPECT_EQ(results[1].rows, 2);
  ASSERT_TRUE(results[1].bound);
  EXPECT_NEAR(results[1].least, *results[1].bound, 1e-14);
  const double third = ratio(spec, 2, {1.0, 2.0, 4.0, 9.0, -3.0, 5.0});
  EXPECT_NEAR(results[1].largest, third, 1e-14 * third);
  EXPECT_NEAR(results[1].ratio, (third + *results[1].bound) / 2.0, 1e-14 * third);
  EXPECT_TRUE(std::isnan(compare_groups(spec, {x.data() + 18, 1, 6}, groups)[0].ratio));
}

TEST(Curvature, NotANumberStaysInItsRow) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> x{1, nan, 3, 1, 2, 4};
  const std::vector<double> measures = curvature({.width = 3}, {x.data(), 2, 3});
  EXPECT_TRUE(std::isnan(measures[0]));
  EXPECT_TRUE(std::isfinite(measures[1]));
}

TEST(Curvature, SurvivesSquaresThatOverflow) {
  const std::vector<double> small{1, 2, 4, 9};
  const NormSpec spec{.kind = NormKind::spherical, .width = 4, .eps = 0.0};
  for (const double scale : {0x1p70, 0x1p-70}) {
    std::vector<double> x(small);
    for (double& value : x) value *= scale;
    EXPECT_NEAR(measure(spec, x) * std::pow(scale, 4) / measure(spec, small), 1.0, 1e-14);
  }
  EXPECT_EQ(measure({.width = 4, .eps = 0.0}, {1e200, -1e200, 3e200, 0.0}), 0.0);
}

TEST(Curvature, IsAccurateWhereEpsDominatesTheRow) {
  const double expected = 6.9946666666666654e-98;
  EXPECT_NEAR(measure({.width = 3, .eps = 1e-5}, {5e-57, -4.7e-57, 3e-57}), expected, 1e-11 * expected);
}

TEST(Curvature, AreScaleInvariant) {
  const std::vector<double> x = test::random_values(4 * width, 8);
  const std::vector<double> gain = test::random_values(width, 9);
  const std::vector<std::size_t> groups{1, 2, 4};
  for (const NormKind kind : kinds) {
    for (const bool with_gain : {false, true}) {
      const auto compared = [&](int of_rows, int of_gain) {
        NormSpec spec{.kind = kind, .width = width, .eps = 0.0};
        for (std::size_t i = 0; i < width && with_gain; ++i)
          spec.gain.push_back(std::scalbn(gain[i], of_gain));
        std::vector<double> rows = x;
        for (double& value : rows) value = std::scalbn(value, of_rows);
        return compare_groups(spec, {rows.data(), 4, width}, groups);
      };
      const std::vector<GroupCurvature> plain = compared(0, 0);
      for (const auto& [of_rows, of_gain] : {std::pair{900, 0}, {-900, 0}, {200, 700}, {-100, -600}}) {
        const std::vector<GroupCurvature> scaled = compared(of_rows, of_gain);
        for (std::size_t k = 0; k < groups.size(); ++k) {
          EXPECT_EQ(scaled[k].rows, 4U);
          EXPECT_EQ(scaled[k].ratio, plain[k].ratio);
          EXPECT_EQ(scaled[k].least, plain[k].least);
          EXPECT_EQ(scaled[k].largest, plain[k].largest);
          EXPECT_FALSE(std::isnan(scaled[k].mean));
        }
      }
    }
  }
}

TEST(Curvature, RowMeasuresAreThoseOfTheComparison) {
  const std::vector<double> x = test::random_values(3 * width, 10);
  const NormSpec spec{.width = width};
  const std::vector<std::size_t> groups{2, 1, 4};
  std::vector<double> of_rows(9), measures(9);
  const MatrixView<const double> rows(x.data(), 3, width);
  const std::vector<GroupCurvature> results = compare_groups(spec, rows, groups, 1, {of_rows.data(), 3, 3});
  curvature_of_groups(spec, rows, groups, {measures.data(), 3, 3});
  EXPECT_EQ(of_rows, measures);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(results[k].mean, (of_rows[k] + of_rows[3 + k] + of_rows[6 + k]) / 3.0,
                1e-13 * results[k].mean);
  }
  EXPECT_THROW(static_cast<void>(compare_groups(spec, rows, groups, 1, {of_rows.data(), 3, 2})), Error);
}

TEST(Curvature, SizesMustFit) {
  const std::vector<double> x(12);
  std::vector<double> out(4);
  const std::size_t five[] = {5};
  EXPECT_THROW(static_cast<void>(curvature({.width = 4}, {x.data(), 1, 12})), Error);
  EXPECT_THROW(curvature_of_groups({.width = 12}, {x.data(), 1, 12}, five, {out.data(), 1, 1}), Error);
  const std::size_t two[] = {2};
  EXPECT_THROW(curvature_of_groups({.width = 12}, {x.data(), 1, 12}, two, {out.data(), 1, 2}), Error);
}

}  // namespace
}  // namespace normscope::norm
