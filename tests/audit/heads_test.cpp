#include <algorithm>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/audit/report.hpp>

namespace normscope::audit {
namespace {

/// A report of nothing but heads with these extremes, most uniform and sharpest; refused where sharpest is 0.
Report report_of(const std::vector<std::pair<double, double>>& extremes) {
  Report report;
  report.path = "model.safetensors";
  report.norms.emplace_back();
  report.model.norms.emplace_back();
  for (std::size_t i = 0; i < extremes.size(); ++i) {
    const auto [uniform, sharp] = extremes[i];
    model::Head& head = report.model.heads.emplace_back();
    head.layer = static_cast<int>(i / 2);
    head.head = static_cast<int>(i % 2);
    HeadReach reach{.refused = "the norm it reads is not known"};
    if (sharp > 0.0) {
      reach = {.attention = selectability::Attention{.most_uniform = {.lower = uniform, .upper = uniform},
                                                     .sharpest = {.lower = sharp, .upper = sharp}}};
    }
    report.heads.push_back(reach);
  }
  return report;
}

const Finding* of_kind(const std::vector<Finding>& findings, const std::string& kind) {
  const auto at = std::find_if(findings.begin(), findings.end(),
                               [&](const Finding& finding) { return finding.kind == kind; });
  return at == findings.end() ? nullptr : &*at;
}

TEST(HeadFindings, NameWhatHeadsCanNeverDo) {
  const std::vector<Finding> findings = find(report_of({{0.0, 50.0}, {2.5, 40.0}, {0.0, 0.0}, {0.0, 5.0}}));
  const Finding* const uniform = of_kind(findings, "never_uniform");
  ASSERT_NE(uniform, nullptr);
  EXPECT_NE(uniform->text.find("1 head can never attend to all keys alike, in any context: layer 0 head 1."),
            std::string::npos);
  EXPECT_EQ(uniform->reproduce, "normscope heads model.safetensors");
  const Finding* const sharp = of_kind(findings, "never_sharp");
  ASSERT_NE(sharp, nullptr);
  EXPECT_NE(sharp->text.find("1 of 3 heads can never put half of their attention on one of 1024 keys: "
                             "layer 1 head 1. The bluntest keeps any two weights within a factor of 148."),
            std::string::npos)
      << sharp->text;
}

TEST(HeadFindings, AreSilentWhereHeadsCanDoBoth) {
  const std::vector<Finding> findings = find(report_of({{0.0, 50.0}, {0.5, 7.0}}));
  EXPECT_EQ(of_kind(findings, "never_uniform"), nullptr);
  EXPECT_EQ(of_kind(findings, "never_sharp"), nullptr);
}

TEST(HeadFigure, ShowsWhatIsMoreThanNothing) {
  const auto figure = [](const Report& report) {
    for (const auto& chart : nlohmann::json::parse(charts_json(report))) {
      if (chart["id"] == "head-spread") return chart;
    }
    return nlohmann::json();
  };
  const nlohmann::json chart = figure(report_of({{1e-9, 50.0}, {2.5, 40.0}, {0.0, 0.0}}));
  const nlohmann::json& rows = chart["spec"]["layer"][1]["data"]["values"];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0],
            (nlohmann::json{{"layer", 0}, {"head", 0}, {"what", "sharpest query"}, {"spread", 50.0}}));
  EXPECT_EQ(rows[2]["what"], "most uniform query");
  EXPECT_NE(chart["answer"].get<std::string>().find("differ by 40 to 50. 1 head cannot attend"),
            std::string::npos);
  EXPECT_TRUE(figure(report_of({{0.0, 0.0}})).is_null());
}

}  // namespace
}  // namespace normscope::audit
