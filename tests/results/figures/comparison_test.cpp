#include <normscope/results/figures.hpp>

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace normscope::figures {
namespace {

rewrite::NormComparison norm(const std::string& name, double change, double cosine, double composite) {
  rewrite::NormComparison result{name, name};
  result.gain_change = change;
  result.gain_cosine = cosine;
  result.readers.push_back({"w", "w", composite});
  return result;
}

nlohmann::json chart_of(const rewrite::Comparison& comparison, const std::string& id) {
  for (const auto& chart : nlohmann::json(comparison_charts(comparison))) {
    if (chart["id"] == id) return chart;
  }
  return {};
}

TEST(ComparisonCharts, ShowEveryChangeThatIsNotZero) {
  rewrite::Comparison comparison;
  comparison.norms = {norm("a", 0.0, 1.0, 0.5), norm("b", 0.25, 0.5, 0.0),
                      norm("c", 0.125, 1.0 - 1e-12, 1e-7)};
  const nlohmann::json drift = chart_of(comparison, "drift");
  ASSERT_FALSE(drift.is_null());
  EXPECT_NE(drift["answer"].get<std::string>().find("b has changed most, by 0.25"), std::string::npos);
  const auto& rows = drift["spec"]["data"]["values"];
  EXPECT_EQ(rows.size(), 4U);
  for (const auto& row : rows) EXPECT_GT(row["value"].get<double>(), 0.0);
  const nlohmann::json turn = chart_of(comparison, "turn");
  ASSERT_FALSE(turn.is_null());
  const auto& angles = turn["spec"]["data"]["values"];
  ASSERT_EQ(angles.size(), 3U);
  EXPECT_NEAR(angles[1]["value"].get<double>(), 60.0, 1e-3);
  EXPECT_NEAR(angles[2]["value"].get<double>(), 180.0 / M_PI * std::sqrt(2e-12), 1e-8);
}

TEST(ComparisonCharts, AreNoneForEqualModels) {
  rewrite::Comparison comparison;
  comparison.norms = {norm("a", 0.0, 1.0, 0.0)};
  EXPECT_TRUE(comparison_charts(comparison).empty());
}

}  // namespace
}  // namespace normscope::figures
