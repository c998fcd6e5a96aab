#include <normscope/results/figures.hpp>

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace normscope::figures {
namespace {

analysis::ReaderRanges reader(const std::string& role, double lowest, double highest, double typical) {
  analysis::ReaderRanges result{.role = role, .weight = "w", .rows = 8};
  result.lowest.bound = lowest;
  result.highest.bound = highest;
  result.typical = typical;
  return result;
}

/// Two experts and a query behind the first norm, a refused map behind the second.
analysis::ModelRanges some() {
  analysis::ModelRanges found;
  found.norms.push_back({.name = "a"});
  found.norms.push_back({.name = "b"});
  found.norms[0].readers = {reader("query", -30.0, 20.0, 3.0), reader("expert", -8.0, 4.0, 1.0),
                            reader("expert", -600.0, 5.0, 60.0)};
  found.norms[0].readers[1].never_positive = {3};
  found.norms[1].readers = {reader("key", -1.0, 1.0, 0.5)};
  found.norms[1].readers[0].refused = "its weights are not there";
  return found;
}

nlohmann::json chart_of(const analysis::ModelRanges& found, const std::string& id) {
  for (const auto& chart : nlohmann::json(range_charts(found))) {
    if (chart["id"] == id) return chart;
  }
  return {};
}

TEST(RangeCharts, ReadersOfOneRoleAreOneMark) {
  const nlohmann::json chart = chart_of(some(), "ranges");
  ASSERT_FALSE(chart.is_null());
  const auto& rows = chart["spec"]["data"]["values"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["role"], "expert");
  EXPECT_EQ(rows[0]["worst"], 600.0);
  EXPECT_EQ(rows[0]["typical"], 60.0);
  EXPECT_EQ(rows[0]["readers"], 2);
}

TEST(RangeCharts, SayHowFarSmallTypesAreFromOverflow) {
  const std::string answer = chart_of(some(), "ranges")["answer"];
  EXPECT_NE(answer.find("at most 600 in magnitude (expert behind a)"), std::string::npos) << answer;
  EXPECT_NE(answer.find("FP8 E4M3 overflows at some input of 1 map"), std::string::npos) << answer;
  EXPECT_NE(answer.find("float16 holds 109 times as much"), std::string::npos) << answer;
  EXPECT_NE(answer.find("FP8 E5M2 holds 95.5 times as much"), std::string::npos) << answer;
  EXPECT_EQ(answer.find("bfloat16"), std::string::npos) << "which nothing comes near to";
}

TEST(RangeCharts, SayWhatTheWorstCaseCosts) {
  const std::string answer = chart_of(some(), "worst-over-typical")["answer"];
  EXPECT_NE(answer.find("8 to 10 times the typical one"), std::string::npos) << answer;
  EXPECT_NE(answer.find("takes 12.7 to 15.9"), std::string::npos) << answer;
}

TEST(RangeCharts, ARatioThatAllMapsShareIsNotDrawn) {
  analysis::ModelRanges found = some();
  found.norms[0].readers.erase(found.norms[0].readers.begin() + 1);  // 8 times, the others 10
  EXPECT_TRUE(chart_of(found, "worst-over-typical").is_null());
  const std::string answer = chart_of(found, "ranges")["answer"];
  EXPECT_NE(answer.find("down to the typical size, smaller by a factor of 10."), std::string::npos) << answer;
}

TEST(RangeCharts, CoverTheDepthOfTheModel) {
  const nlohmann::json chart = chart_of(some(), "ranges");  // nothing is known behind its second norm
  EXPECT_EQ(chart["spec"]["encoding"]["x"]["scale"]["domain"], nlohmann::json({0, 1}));
}

TEST(RangeCharts, CountOutputsThatKeepTheirSign) {
  analysis::ModelRanges found = some();
  const nlohmann::json chart = chart_of(found, "fixed-signs");
  ASSERT_FALSE(chart.is_null());
  EXPECT_NE(chart["answer"].get<std::string>().find("1 output of linear maps can never be positive"),
            std::string::npos);
  EXPECT_EQ(chart["spec"]["data"]["values"].size(), 1U);
  // One output, so no tick between none and one.
  EXPECT_EQ(chart["spec"]["layer"][0]["encoding"]["y"]["axis"]["tickCount"], 1);
  found.norms[0].readers[1].never_positive.clear();
  EXPECT_TRUE(chart_of(found, "fixed-signs").is_null());
}

TEST(RangeCharts, AreNoneWhereNothingIsKnown) {
  EXPECT_TRUE(range_charts({}).empty());
  analysis::ModelRanges found = some();
  for (analysis::ReaderRanges& one : found.norms[0].readers) one.refused = "no";
  EXPECT_TRUE(range_charts(found).empty());
}

}  // namespace
}  // namespace normscope::figures
