#include <normscope/selectability/select.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "selectability/test_keys.hpp"

namespace normscope::selectability {
namespace {

Selection decided_keys(const Keys& set, const Options& options = {}) {
  Selection result = select_keys(set.view(), options);
  decide_exactly(set.view(), result);
  return result;
}

Keys times(Keys set, const std::vector<double>& columns) {
  for (std::size_t i = 0; i < set.values.size(); ++i) set.values[i] *= columns[i % set.width];
  return set;
}

RC_GTEST_PROP(ExactSelect, AgreesWithPlanarHulls, (std::uint64_t seed)) {
  Random random(seed);
  Keys points{.width = 2};
  const std::size_t count = 2 + random.below(20);
  for (std::size_t i = 0; i < 2 * count; ++i) {
    points.values.push_back(static_cast<double>(random.below(7)) - 3.0);
  }
  const std::vector<Selectability> expected = planar_vertices(points);
  // These keys far from zero, and in columns of very different sizes.
  Keys moved = points;
  for (double& value : moved.values) value += std::scalbn(1.0, 30);
  const int exponent = static_cast<int>(random.below(180)) - 90;
  for (const Keys& set : {points, moved, times(points, {1.0, std::scalbn(1.0, exponent)})}) {
    for (const double tolerance : {1e-12, 0.0}) {
      const Selection found = select_keys(set.view(), {.tolerance = tolerance});
      for (std::size_t i = 0; i < count; ++i) {
        RC_ASSERT(found.keys[i].answer == expected[i] || found.keys[i].answer == Selectability::undecided);
      }
      const Selection exact = decided_keys(set, {.tolerance = tolerance});
      RC_ASSERT(answers(exact) == expected);
      RC_ASSERT(verify(set.view(), exact));
    }
  }
}

TEST(ExactSelect, OneBitDecides) {
  // The third key lies on a side of a triangle, or one bit beside it.
  for (const double x : {std::nextafter(1.0, 0.0), 1.0, std::nextafter(1.0, 2.0)}) {
    const Keys set{{0, 0, 3, 3, x, 1, -9, 9}, 2};
    for (const double tolerance : {1e-12, 0.0}) {
      const Selection exact = decided_keys(set, {.tolerance = tolerance});
      EXPECT_EQ(exact.keys[2].answer, x > 1.0 ? Selectability::selectable : Selectability::unselectable) << x;
      EXPECT_TRUE(verify(set.view(), exact));
    }
  }
  // In float64, 0.3 and 0.9 are not three times 0.1 and 0.3: the rounding of the midpoint decides.
  const Keys middle{{0.1, 0.3, 0.3, 0.9, 0.2, std::nextafter(0.6, 1.0), 0.2, -9.0}, 2};
  const double below = std::fma(-0.2, 3.0, middle.values[5]);
  const Selection exact = decided_keys(middle);
  EXPECT_GT(below, 0.0);
  EXPECT_EQ(exact.keys[2].answer, Selectability::selectable);
  EXPECT_TRUE(verify(middle.view(), exact));
}

TEST(ExactSelect, WithToleranceZeroOnlyProofsCount) {
  Keys set = normal_keys(60, 3, 5);
  set.add(set.row(0));
  const Selection plain = select_keys(set.view(), {.tolerance = 0.0});
  for (const Verdict& verdict : plain.keys) {
    EXPECT_TRUE(verdict.answer != Selectability::unselectable || verdict.proof == Proof::duplicate);
  }
  EXPECT_GT(plain.count(Selectability::undecided), 0U);
  const Selection exact = decided_keys(set, {.tolerance = 0.0});
  EXPECT_EQ(exact.count(Selectability::undecided), 0U);
  EXPECT_EQ(answers(exact), answers(select_keys(set.view())));
  EXPECT_EQ(exact.exact.size(), plain.count(Selectability::undecided));
  EXPECT_TRUE(verify(set.view(), exact));
}

TEST(ExactSelect, ColumnsOfAnySizeKeepTheirAnswers) {
  const Keys set = normal_keys(80, 3, 9);
  const std::vector<Selectability> expected = answers(select_keys(set.view()));
  for (const std::vector<double>& columns :
       {std::vector<double>{0x1p27, 1, 1}, {0x1p-40, 1, 1}, {0x1p-90, 0x1p90, 1}, {0x1p-190, 1, 0x1p90}}) {
    const Keys scaled = times(set, columns);
    const Selection found = select_keys(scaled.view());
    EXPECT_EQ(answers(found), expected);
    EXPECT_TRUE(verify(scaled.view(), found));
  }
  // A constant column changes no answer, however large it is.
  Keys wide{.width = 4};
  for (std::size_t i = 0; i < set.rows(); ++i) {
    std::vector<double> key = set.row(i);
    key.push_back(1e30);
    wide.add(key);
  }
  EXPECT_EQ(answers(select_keys(wide.view())), expected);
  EXPECT_TRUE(verify(wide.view(), select_keys(wide.view())));
}

TEST(ExactSelect, KeysFarSmallerThanOthersAreNotEqual) {
  for (const Keys& set : {Keys{{1e30, 1e-30, 2e-30}, 1}, Keys{{1e30, 1, 1e-30, 0, 2e-30, 0}, 2},
                          Keys{{1e30, 1e-30, 1e-30, 0, 2e-30, 0}, 2}}) {
    const Selection strict = select_keys(set.view(), {.tolerance = 0.0});
    EXPECT_EQ(strict.count(Selectability::unselectable), 0U);
    const Selection exact = decided_keys(set);
    EXPECT_EQ(exact.keys[1].answer, Selectability::selectable);
    EXPECT_EQ(exact.keys[2].answer, set.width == 1 ? Selectability::unselectable : Selectability::selectable);
    EXPECT_TRUE(verify(set.view(), exact));
  }
}

TEST(ExactSelect, ToleranceAppliesToEachColumn) {
  // 1e-10 away from the side: negligible for the extent of the first column, but not for that of the second.
  const Keys set{{0, 0, 4, 0, 0, 4e-9, 2, 2e-9 + 1e-10}, 2};
  Selection claimed = select_keys(set.view(), {.tolerance = 1e-9});
  EXPECT_EQ(claimed.count(Selectability::selectable), 4U);
  claimed.keys[3] = {.answer = Selectability::unselectable,
                     .proof = Proof::weights,
                     .residual = 1.1e-10,
                     .weights = {{1, 0.5}, {2, 0.5}}};
  EXPECT_FALSE(verify(set.view(), claimed));
  claimed.tolerance = 0.1;
  EXPECT_TRUE(verify(set.view(), claimed));
}

TEST(ExactSelect, StepsMayBeSavedWithColumnsFarApart) {
  const Keys set = times(normal_keys(40, 3, 11), {1e-12, 1, 1});
  const Selection whole = select_keys(set.view());
  Search first(set.view(), {});
  while (!first.done()) first.step();
  Search second(set.view(), {});
  second.resume(first.state());
  while (!second.done()) second.step();
  const Selection resumed = std::move(second).result();
  EXPECT_EQ(answers(resumed), answers(whole));
  EXPECT_TRUE(verify(set.view(), resumed));
}

TEST(ExactSelect, ForgedIntegersProveNothing) {
  const Keys set{{0, 0, 4, 0, 0, 4, 1, 2, 1, 3}, 2};
  const Selection honest = decided_keys(set, {.tolerance = 0.0});
  ASSERT_TRUE(verify(set.view(), honest));
  ASSERT_EQ(honest.exact.size(), 2U);
  const auto rejects = [&](auto forge) {
    Selection forged = honest;
    forge(forged);
    return !verify(set.view(), forged);
  };
  EXPECT_TRUE(rejects([](Selection& s) { s.exact[0].separation.b[0].numerator += "0"; }));
  EXPECT_TRUE(rejects([](Selection& s) { s.exact[0].separation.denominator = "0"; }));
  EXPECT_TRUE(rejects([](Selection& s) { s.exact.clear(); }));
  EXPECT_TRUE(rejects([](Selection& s) { s.exact[0].separation.b = {{3, "1"}}; }));
  EXPECT_TRUE(rejects([](Selection& s) { s.keys[3].answer = Selectability::selectable; }));
  EXPECT_TRUE(rejects([](Selection& s) { s.keys[3].residual = -1.0; }));
  EXPECT_TRUE(rejects([](Selection& s) { s.exact[0].key = 4; }));
}

TEST(ExactSelect, IntegersOfASelectableKeyAreChecked) {
  // The third key lies one bit beside a side of the triangle, so that only integers decide.
  const Keys set{{0, 0, 3, 3, std::nextafter(1.0, 2.0), 1, -9, 9}, 2};
  Selection honest = select_keys(set.view(), {.tolerance = 0.0});
  honest.keys[2] = {};
  decide_exactly(set.view(), honest);
  ASSERT_EQ(honest.keys[2].answer, Selectability::selectable);
  ASSERT_EQ(honest.keys[2].proof, Proof::exact);
  ASSERT_TRUE(verify(set.view(), honest));
  EXPECT_EQ(honest.query(set.view(), 2), honest.keys[2].query);
  const auto rejects = [&](auto forge) {
    Selection forged = honest;
    forge(forged);
    return !verify(set.view(), forged);
  };
  EXPECT_TRUE(rejects([](Selection& s) { s.keys[2].margin = 1.0; }));
  EXPECT_TRUE(rejects([](Selection& s) { s.exact[0].separation.normal[0] = "x"; }));
  EXPECT_TRUE(rejects([](Selection& s) { s.exact[0].separation.answer = proof::Answer::undecided; }));
  EXPECT_FALSE(rejects([](Selection& s) { s.keys[2].margin = 0.0; }));
  // An answer of the only key has no other key to be compared with.
  const Keys one{{1, 2}, 2};
  Selection alone = select_keys(one.view());
  alone.keys[0].proof = Proof::exact;
  alone.exact = {{.key = 0, .separation = honest.exact[0].separation}};
  EXPECT_FALSE(verify(one.view(), alone));
}

TEST(ExactSelect, WideKeysAreDecidedOneByOne) {
  Keys set = normal_keys(5, 130, 3);
  for (double& value : set.values) value = std::round(4.0 * value);
  std::vector<double> middle = set.row(0);
  for (std::size_t i = 0; i < 130; ++i) middle[i] = 0.5 * (middle[i] + set.view().row(1)[i]);
  set.add(middle);
  Selection selection = select_keys(set.view(), {.tolerance = 0.0});
  std::vector<std::string> reports;
  decide_exactly(set.view(), selection, {}, 1,
                 Progress([&](std::string_view what, std::size_t now, std::size_t of) {
                   if (what == "exact key") reports.push_back(std::to_string(now) + "/" + std::to_string(of));
                   return true;
                 }));
  EXPECT_EQ(selection.keys[5].answer, Selectability::unselectable);
  EXPECT_EQ(selection.count(Selectability::selectable), 5U);
  EXPECT_EQ(reports, (std::vector<std::string>{"0/1", "1/1"}));
  EXPECT_TRUE(verify(set.view(), selection));
}

TEST(ExactSelect, LimitsAreNamed) {
  const Keys set{{0, 0, 4, 0, 0, 4, 1, 1}, 2};
  Selection found = select_keys(set.view(), {.tolerance = 0.0});
  decide_exactly(set.view(), found, {.order = 1});
  ASSERT_EQ(found.exact.size(), 1U);
  EXPECT_NE(found.exact[0].separation.reason.find("more than 1"), std::string::npos);
  EXPECT_EQ(found.keys[3].answer, Selectability::undecided);
}

}  // namespace
}  // namespace normscope::selectability
