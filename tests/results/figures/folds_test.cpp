#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/results/figures.hpp>

namespace normscope::nets {
namespace {

nlohmann::json drawn(const std::vector<Fold>& folds) { return figures::folds(folds)["data"]["values"]; }

TEST(FoldFigure, ShowsEveryLayerOfAFewAndRangesOfMany) {
  std::vector<Fold> folds(300, {.first = 0, .second = 1, .gap = 0.5, .runs = 4});
  EXPECT_EQ(drawn(folds).size(), 300U);
  folds.resize(60001, {.first = 0, .second = 1, .gap = 0.25, .runs = 2});
  folds[60000].runs = 1;
  const nlohmann::json many = drawn(folds);
  EXPECT_LE(many.size(), 400U);
  // 151 layers a point: the first 300 gaps of 0.5 fill the first point, not the second.
  EXPECT_EQ(many[0]["least"], 0.5);
  EXPECT_EQ(many[1]["least"], 0.25);
  EXPECT_EQ(many[1]["median"], 0.5);
  EXPECT_EQ(many.back()["layer"], 60001);
  EXPECT_EQ(many.back()["runs"], 1);
}

TEST(FoldFigure, FoldsWithoutAGapHaveNone) {
  const std::vector<Fold> folds = {
      {.first = 0, .second = 1, .gap = std::numeric_limits<double>::infinity(), .runs = 3},
      {.gap = 0.0, .runs = 3}};
  const nlohmann::json rows = drawn(folds);
  EXPECT_FALSE(rows[0].contains("least"));
  EXPECT_FALSE(rows[1].contains("least"));
  const nlohmann::json figure = figures::folds(folds);
  ASSERT_EQ(figure["vconcat"].size(), 1U);
  EXPECT_EQ(figure["vconcat"][0]["layer"][1]["data"]["values"][0]["layer"], 2);
  EXPECT_TRUE(drawn({}).empty());
}

}  // namespace
}  // namespace normscope::nets
