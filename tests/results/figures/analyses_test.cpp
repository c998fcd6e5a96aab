#include <normscope/results/figures.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "analysis/head_reports.hpp"

namespace normscope::figures {
namespace {

using Json = nlohmann::json;

Json values_of(const Json& part) { return part["data"]["values"]; }

bool says(const Json& chart, const std::string& words) {
  return chart["answer"].get<std::string>().find(words) != std::string::npos;
}

TEST(ImageChart, ShowsEverySemiAxis) {
  const std::vector<double> axes{8.0, 4.0, 2.0, 1e-30};
  const Json charts = image_charts(axes, 3.0);
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_EQ(charts[0]["id"], "semi-axes");
  EXPECT_TRUE(says(charts[0], "4 semi-axes from 1e-30 to 8"));
  // What is zero but for rounding would take most of the axis.
  EXPECT_EQ(values_of(charts[0]["spec"])[0], (Json{{"rank", 1}, {"length", 8.0}}));
  EXPECT_EQ(values_of(charts[0]["spec"])[3], (Json{{"rank", 4}, {"length", 3e-8}}));
  EXPECT_TRUE(image_charts({}, 0.0).empty());
}

TEST(HeadCharts, AreThoseOfTheReport) {
  const analysis::Report report = analysis::report_of({{1e-9, 50.0}, {2.5, 40.0}});
  const Json charts = head_charts(report.model, report.heads);
  ASSERT_EQ(charts.size(), 1U);
  const Json all = figures::charts(report);
  EXPECT_EQ(charts[0], all.back());
}

TEST(SelectionChart, ShowsSelectableKeysByTheirMargin) {
  using selectability::Selectability;
  selectability::Selection selection;
  const auto add = [&](Selectability answer, double margin) {
    selection.keys.push_back({.answer = answer, .margin = margin});
  };
  add(Selectability::selectable, 0.5);
  add(Selectability::unselectable, 0.0);
  add(Selectability::selectable, 2.0);
  add(Selectability::selectable, 0.0);  // an exact query with more digits than doubles
  add(Selectability::undecided, 0.0);
  const Json charts = selection_charts(selection);
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_TRUE(says(charts[0], "3 of 5 keys can be selected by some query, 1 cannot by any, 1 undecided"));
  EXPECT_EQ(values_of(charts[0]["spec"]),
            (Json{{{"rank", 1}, {"key", 2}, {"margin", 2.0}}, {{"rank", 2}, {"key", 0}, {"margin", 0.5}}}));
  selectability::Selection alone;
  alone.keys.push_back(
      {.answer = Selectability::selectable, .margin = std::numeric_limits<double>::infinity()});
  EXPECT_TRUE(selection_charts(alone).empty());
}

TEST(ReachChart, ShowsTheLeadsThatAreKnown) {
  using proof::Answer;
  selectability::Survey survey;
  const auto add = [&](bool done, Answer answer, double lower, double upper) {
    survey.tokens.push_back({.done = done, .answer = answer, .lower = lower, .upper = upper});
  };
  add(true, Answer::yes, 3.0, 4.0);
  add(true, Answer::no, -INFINITY, -1.0);
  add(false, Answer::undecided, -INFINITY, INFINITY);
  add(true, Answer::yes, 1.0, 9.0);
  const Json charts = reach_charts(survey);
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_TRUE(says(charts[0], "2 of 4 tokens can, 1 never"));
  EXPECT_EQ(values_of(charts[0]["spec"]["layer"][1]),
            (Json{{{"rank", 1}, {"token", 1}, {"lead", -1.0}, {"answer", "never the largest"}},
                  {{"rank", 2}, {"token", 3}, {"lead", 1.0}, {"answer", "reachable"}},
                  {{"rank", 3}, {"token", 0}, {"lead", 3.0}, {"answer", "reachable"}}}));
  EXPECT_TRUE(reach_charts({}).empty());
}

TEST(SeparationChart, CountsEveryRowOnce) {
  const std::vector<double> along{0.0, 1.0, 1.0, 9.5, 10.0};
  const std::vector<std::size_t> classes{0, 0, 1, 1, 1};
  const Json charts = separation_charts(along, classes, 5.0);
  ASSERT_EQ(charts.size(), 1U);
  const Json& layers = charts[0]["spec"]["layer"];
  ASSERT_EQ(layers.size(), 2U);
  // Bars over intervals start at zero only where that is said.
  EXPECT_EQ(layers[0]["encoding"]["y2"]["datum"], 0);
  std::vector<std::size_t> rows(2);
  for (const Json& bin : values_of(layers[0])) {
    rows[static_cast<std::size_t>(std::stoi(bin["class"].get<std::string>()))] +=
        bin["rows"].get<std::size_t>();
    EXPECT_LT(bin["from"], bin["to"]);
  }
  EXPECT_EQ(rows, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(values_of(layers[1])[0]["from"], 5.0);
  EXPECT_EQ(Json(separation_charts(along, classes, {}))[0]["spec"]["layer"].size(), 1U);
}

TEST(SeparationChart, IsNoneWhereRowsHaveNoExtent) {
  const std::vector<std::size_t> classes{0, 1};
  EXPECT_TRUE(separation_charts(std::vector{2.0, 2.0}, classes, {}).empty());
  EXPECT_TRUE(separation_charts(std::vector{-1e308, 1e308}, classes, {}).empty());
  EXPECT_TRUE(separation_charts(std::vector{-INFINITY, 1.0}, classes, {}).empty());
  EXPECT_TRUE(separation_charts({}, {}, {}).empty());
}

}  // namespace
}  // namespace normscope::figures
