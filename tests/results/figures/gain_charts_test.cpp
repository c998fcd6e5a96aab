#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/results/figures.hpp>

#include "analysis/norms.hpp"
#include "support/gains.hpp"

namespace normscope::analysis {
namespace {

class GainCharts : public Norms {
 protected:
  /// The charts whose id begins so.
  static std::vector<nlohmann::json> of(const Report& report, const std::string& id) {
    std::vector<nlohmann::json> result;
    for (const auto& chart : nlohmann::json(figures::charts(report))) {
      if (chart["id"].get<std::string>().rfind(id, 0) == 0) result.push_back(chart);
    }
    return result;
  }
};

TEST_F(GainCharts, HaveAPanelForAttentionAndOneForTheMlps) {
  for (int i = 0; i < 5; ++i) add(test::random_gain(64, "ordinary", 4));
  Report given = report();
  ASSERT_EQ(of(given, "gains-").size(), 1U);
  EXPECT_FALSE(of(given, "gains-")[0].contains("panel")) << "no role is known";
  for (std::size_t i = 0; i < 4; ++i) {
    given.norms[i].norm.role = i % 2 == 0 ? "attention input" : "mlp input";
    given.norms[i].norm.layer = static_cast<int>(i / 2);
  }
  const std::vector<nlohmann::json> panels = of(given, "gains-");
  ASSERT_EQ(panels.size(), 3U);
  EXPECT_EQ(panels[0]["panel"], "Norms of attention");
  EXPECT_EQ(panels[1]["panel"], "Norms of the MLPs");
  EXPECT_EQ(panels[2]["panel"], "Other norms");
  const auto axes = [](const nlohmann::json& panel) { return panel["spec"]["layer"][0]["encoding"]; };
  EXPECT_EQ(axes(panels[0])["y"]["title"], "layer");
  EXPECT_EQ(axes(panels[0])["y"]["axis"]["labelExpr"], R"(["0","1"][datum.value])");
  EXPECT_EQ(axes(panels[0])["x"]["scale"]["type"], "log");
  for (const nlohmann::json& panel : panels) {
    EXPECT_EQ(axes(panel)["x"]["scale"], axes(panels[0])["x"]["scale"]) << "panels are compared by eye";
  }
}

TEST_F(GainCharts, DrawEveryGainInARidge) {
  std::vector<double> gain(64, 1.0);
  gain[3] = 8.0;
  gain[4] = 1e-30;  // beyond the axis: counted at its end
  add(gain);
  const nlohmann::json spec = of(report(), "gains-")[0]["spec"];
  std::size_t counted = 0;
  double highest = 0.0;
  for (const auto& row : spec["layer"][0]["data"]["values"]) {
    counted += row["count"].get<std::size_t>();
    highest = std::min(highest, row["top"].get<double>());
  }
  EXPECT_EQ(counted, 64U);
  EXPECT_DOUBLE_EQ(highest, -1.7);
  const auto& dots = spec["layer"][1]["data"]["values"];
  ASSERT_EQ(dots.size(), 1U);
  EXPECT_EQ(dots[0]["coordinate"], 3);
}

TEST_F(GainCharts, HaveAFiniteAxisForTheLargestGains) {
  add({1.7e308, 1.7e308, 1.6e308, 1e308});
  const nlohmann::json spec = of(report(), "gains-")[0]["spec"];
  for (const auto& end : spec["layer"][0]["encoding"]["x"]["scale"]["domain"]) EXPECT_LE(end, 1e300);
}

TEST_F(GainCharts, MapCoordinatesByNorm) {
  std::vector<double> gain(200, 0.5);
  gain[150] = 4.0;
  add(gain);
  EXPECT_TRUE(of(report(), "gain-map").empty()) << "of one norm there is nothing to compare";
  add(gain);
  const nlohmann::json chart = of(report(), "gain-map").at(0);
  const auto& rows = chart["spec"]["data"]["values"];
  ASSERT_EQ(rows.size(), 2U * 50U);
  const auto unusual = std::count_if(rows.begin(), rows.end(), [](const auto& row) {
    return row["coordinate"] == 150 && row["ratio"] == 8.0 && row["doublings"] == 3.0;
  });
  EXPECT_EQ(unusual, 2);
  EXPECT_EQ(chart["spec"]["encoding"]["y"]["axis"]["labelExpr"], R"(["0.norm","1.norm"][datum.value])");
}

TEST_F(GainCharts, NameNormsAsTheyAre) {
  add(test::random_gain(64, "ordinary", 4));
  add(test::random_gain(64, "ordinary", 5));
  Report given = report();
  given.norms[0].norm.name = "transformer.h.0.\"]+x['";
  given.norms[1].norm.name = "transformer.ln_f";
  const nlohmann::json condition = of(given, "condition").at(0);
  EXPECT_EQ(condition["spec"]["encoding"]["x"]["axis"]["labelExpr"],
            R"(["h.0.\"]+x['","ln_f"][datum.value])");
  // Only some of many norms are named.
  for (int i = 0; i < 100; ++i) given.norms.push_back(given.norms[0]);
  EXPECT_LE(of(given, "condition").at(0)["spec"]["encoding"]["x"]["axis"]["values"].size(), 48U);
}

}  // namespace
}  // namespace normscope::analysis
