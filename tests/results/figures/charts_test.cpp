#include <normscope/results/figures.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "analysis/head_reports.hpp"
#include "analysis/norms.hpp"
#include "support/gains.hpp"

namespace normscope::analysis {
namespace {

using ChartsOfNorms = Norms;

/// The chart of that id; null where there is none.
nlohmann::json chart_of(const Report& report, const std::string& id) {
  for (const auto& chart : nlohmann::json(figures::charts(report))) {
    if (chart["id"] == id) return chart;
  }
  return {};
}

TEST_F(ChartsOfNorms, DrawACauseBesideWhatIsUsual) {
  std::vector<double> gain(64, 1.0);
  add(gain);
  gain[7] = 1000.0;
  add(gain);
  const nlohmann::json chart = chart_of(report(), "cause-1");
  ASSERT_FALSE(chart.is_null());
  const nlohmann::json& layers = chart["spec"]["layer"];
  const nlohmann::json& band = layers[0]["data"]["values"][0];
  EXPECT_EQ(band["low"], 1.0);
  EXPECT_GE(band["high"].get<double>(), outlier_ratio / 2);
  EXPECT_LT(band["high"].get<double>(), 1000.0);
  // Its label stands above the figure, where it covers no point.
  EXPECT_LT(layers[0]["layer"].back()["encoding"]["y"]["value"], 0);
  const nlohmann::json& rows = layers[1]["data"]["values"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["unusual"], false);
  EXPECT_EQ(rows[1]["unusual"], true);
  EXPECT_EQ(rows[1]["value"], 1000.0);
}

TEST_F(ChartsOfNorms, CarryTheirDataAndTheirWords) {
  add(test::random_gain(64, "wide", 3), std::vector<double>(64, 0.5));
  add(test::random_gain(64, "ordinary", 4));
  for (const auto& chart : nlohmann::json(figures::charts(report()))) {
    for (const char* field : {"id", "question", "answer", "description"}) {
      EXPECT_FALSE(chart[field].get<std::string>().empty()) << chart["id"];
    }
    const nlohmann::json& spec = chart["spec"];
    const nlohmann::json& data = spec.contains("data") ? spec["data"] : spec["layer"][0]["data"];
    EXPECT_FALSE(data["values"].empty()) << chart["id"];
    for (const auto& row : data["values"]) {
      for (const auto& [name, value] : row.items())
        EXPECT_FALSE(value.is_null()) << chart["id"] << " " << name;
    }
  }
}

TEST_F(ChartsOfNorms, JoinNormsThroughDepthOnlyInAKnownOrder) {
  add(test::random_gain(64, "wide", 3));
  add(test::random_gain(64, "ordinary", 4));
  const auto condition = [&] { return chart_of(report(), "condition")["spec"]; };
  const auto title = [](const nlohmann::json& spec) {
    return spec["encoding"]["x"]["title"].get<std::string>();
  };
  const nlohmann::json ordered = condition();
  ASSERT_EQ(ordered["layer"].size(), 2U);
  EXPECT_EQ(ordered["layer"][0]["mark"]["type"], "line");
  EXPECT_EQ(title(ordered), "norm, in the order of the forward pass");
  order_known_ = false;
  const nlohmann::json unordered = condition();
  ASSERT_EQ(unordered["layer"].size(), 1U);
  EXPECT_EQ(unordered["layer"][0]["mark"]["type"], "point");
  EXPECT_NE(title(unordered).find("not known"), std::string::npos);
}

TEST_F(ChartsOfNorms, LeaveOutWhatSaysNothing) {
  const auto with_id = [&](const std::string& id) { return chart_of(report(), id); };
  std::vector<double> gain(64, 1.0);
  gain[7] = 9.0;
  add(gain);
  add(std::vector<double>(64, 1.0));
  const nlohmann::json condition = with_id("condition")["spec"];
  EXPECT_TRUE(condition["encoding"]["color"].contains("legend")) << "no role is known";
  EXPECT_TRUE(condition["encoding"]["color"]["legend"].is_null());
  EXPECT_EQ(with_id("spectra")["spec"]["encoding"]["color"]["legend"]["values"], nlohmann::json({0, 1}));
  EXPECT_EQ(with_id("similarity")["answer"].get<std::string>().find(" from "), std::string::npos);
}

TEST_F(ChartsOfNorms, SayHowFarABiasMovesTheImage) {
  // A sphere of radius 8, shifted by 6 and by 16.
  std::vector<double> bias(64);
  bias[5] = 6.0;
  add(std::vector<double>(64, 1.0), bias);
  bias[5] = 16.0;
  add(std::vector<double>(64, 1.0), bias);
  const Report given = report();
  const nlohmann::json charts = figures::charts(given);
  const auto shift = std::find_if(charts.begin(), charts.end(),
                                  [](const nlohmann::json& chart) { return chart["id"] == "shift"; });
  ASSERT_NE(shift, charts.end());
  EXPECT_NE(shift->at("answer").get<std::string>().find("0.75 to 2"), std::string::npos)
      << shift->at("answer");
}

TEST_F(ChartsOfNorms, LeaveOutWhatIsNotFinite) {
  add({1.0, NAN, 2.0});
  add({1.0, 3.0, 2.0});
  EXPECT_FALSE(figures::charts(report()).empty());
}

TEST_F(ChartsOfNorms, TakeGainsAtTheEndsOfTheRange) {
  add({1e308, -1e308, 0.5e308, 1e300});
  add({1e-200, 2e-200, 3e-200, 4e-200});
  add({5e-324, 1e-323, 5e-324, 0.0});
  EXPECT_NO_THROW(static_cast<void>(figures::charts(report())));
}

TEST(HeadFigure, ShowsOnlySpreadsAboveZero) {
  const auto figure = [](const Report& report) {
    for (const auto& chart : nlohmann::json(figures::charts(report))) {
      if (chart["id"] == "head-spread") return chart;
    }
    return nlohmann::json();
  };
  const nlohmann::json chart = figure(report_of({{1e-9, 50.0}, {2.5, 40.0}, {0.0, 0.0}}));
  const nlohmann::json& rows = chart["spec"]["layer"][1]["data"]["values"];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0],
            (nlohmann::json{
                {"layer", 0}, {"place", "0"}, {"head", 0}, {"what", "sharpest query"}, {"spread", 50.0}}));
  EXPECT_EQ(rows[2]["what"], "most uniform query");
  EXPECT_NE(chart["answer"].get<std::string>().find("differ by 40 to 50. 1 head cannot attend"),
            std::string::npos);
  EXPECT_TRUE(figure(report_of({{0.0, 0.0}})).is_null());
}

TEST(HeadFigure, TellsPassesApart) {
  for (const auto& chart : nlohmann::json(figures::charts(report_of_passes()))) {
    if (chart["id"] != "head-spread") continue;
    const nlohmann::json& points = chart["spec"]["layer"][1];
    EXPECT_EQ(points["encoding"]["x"]["field"], "place");
    EXPECT_EQ(points["data"]["values"][0]["place"], "0, first pass");
    EXPECT_EQ(points["data"]["values"][1]["place"], "0, later passes");
    // Bounds are printed rounded up.
    EXPECT_NE(chart["answer"].get<std::string>().find("differ by 5.02 to 301. 1 head cannot attend"),
              std::string::npos)
        << chart["answer"];
    EXPECT_NE(chart["description"].get<std::string>().find("for 1 head by layer"), std::string::npos);
    return;
  }
  FAIL() << "no figure";
}

TEST(HeadFigure, ShowsSharpnessByDistance) {
  Report report = report_of({{0.0, 50.0}, {0.0, 40.0}});
  heads::OverDistances over;
  over.within = 512;
  over.curve = {{0, 10.0, 0.0}, {5, 60.0, 0.0}, {511, 20.0, 0.0}};
  for (heads::HeadReach& head : report.heads) head.attention->distances = over;
  const nlohmann::json charts(figures::charts(report));
  const auto at = std::find_if(charts.begin(), charts.end(),
                               [](const auto& chart) { return chart["id"] == "head-distance"; });
  ASSERT_NE(at, charts.end());
  const nlohmann::json& rows = (*at)["spec"]["data"]["values"];
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[1],
            (nlohmann::json{{"line", "layer 0 head 0"}, {"layer", 0}, {"distance", 5}, {"spread", 60.0}}));
  EXPECT_NE((*at)["answer"].get<std::string>().find(
                "The scores of two keys at one distance from the query can differ by 60, where that "
                "distance is 5 positions; at distance 0 by 10. Computed at 3 distances and joined by lines, "
                "which do not show what lies between."),
            std::string::npos);
  EXPECT_EQ((*at)["spec"]["layer"][1]["mark"]["type"], "point");
  const auto spreads = std::find_if(charts.begin(), charts.end(),
                                    [](const auto& chart) { return chart["id"] == "head-spread"; });
  EXPECT_NE((*spreads)["answer"].get<std::string>().find("Over contexts of at most 512 positions"),
            std::string::npos);
  // Each layer of many heads has one line, that of the sharpest at each distance.
  std::vector<std::pair<double, double>> many(130, {0.0, 50.0});
  Report deep = report_of(many);
  for (std::size_t i = 0; i < many.size(); ++i) {
    deep.heads[i].attention->distances = over;
    deep.heads[i].attention->distances->curve[1].spread = 60.0 + static_cast<double>(i % 2);
  }
  for (const auto& chart : nlohmann::json(figures::charts(deep))) {
    if (chart["id"] != "head-distance") continue;
    EXPECT_EQ(chart["spec"]["data"]["values"].size(), 65u * 3u);
    EXPECT_EQ(chart["spec"]["data"]["values"][1]["spread"], 61.0);
  }
}

}  // namespace
}  // namespace normscope::analysis
