#include <normscope/lnnet/figures.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/lnnet/evaluate.hpp>
#include <normscope/lnnet/tasks.hpp>

namespace normscope::lnnet {
namespace {

TEST(Figures, CurvesHoldEveryRecordAndTransition) {
  const std::vector<double> loss{0.7, 0.5, 0.1};
  const std::vector<double> accuracy{0.5, 0.7, 0.9};
  const std::vector<Transition> marks{{5, 0.2}};
  const auto spec = nlohmann::json::parse(curves_figure(loss, accuracy, 5, marks));
  EXPECT_EQ(spec["datasets"]["records"].size(), 3U);
  EXPECT_EQ(spec["datasets"]["records"][2]["step"], 10);
  EXPECT_EQ(spec["datasets"]["transitions"][0]["step"], 5);
  const auto& layers = spec["vconcat"][0]["layer"];
  EXPECT_EQ(layers[0]["data"]["name"], "records");
  EXPECT_EQ(layers[1]["data"]["name"], "transitions");
  EXPECT_EQ(layers[0]["encoding"]["y"]["scale"]["type"], "log");
}

TEST(Figures, ThinnedCurvesKeepTheFirstAndTheLastRecord) {
  std::vector<double> loss(1001);
  std::vector<double> accuracy(loss.size());
  for (std::size_t i = 0; i < loss.size(); ++i) loss[i] = accuracy[i] = static_cast<double>(i);
  for (const std::size_t most : {1U, 3U, 100U, 1000U, 5000U}) {
    const Curves shown = thinned(loss, accuracy, 10, most);
    EXPECT_LE(shown.step.size(), most + 1);
    EXPECT_EQ(shown.step.front(), 0.0);
    EXPECT_EQ(shown.step.back(), 10000.0);
    for (std::size_t i = 0; i < shown.step.size(); ++i) {
      EXPECT_EQ(shown.step[i], 10.0 * shown.loss[i]);
      EXPECT_EQ(shown.loss[i], shown.accuracy[i]);
    }
  }
  EXPECT_TRUE(thinned({}, {}, 10, 5).step.empty());
}

TEST(Figures, TheBoundaryIsTheNets) {
  // Class 1 where x > 0.
  const Net net{.head = {.in = 2, .out = 2, .weight = {0, 0, 1, 0}, .bias = {0, 0}}};
  const auto spec = nlohmann::json::parse(boundary_figure(net, xor_corners(50, 1), 10));
  EXPECT_EQ(spec["layer"][1]["data"]["values"].size(), 50U);
  for (const auto& cell : spec["layer"][0]["data"]["values"]) {
    EXPECT_EQ(cell["class"], cell["x"].get<double>() + cell["x2"].get<double>() > 0.0 ? 1 : 0);
  }
}

TEST(Figures, SeedsAreADistribution) {
  // At every step the accuracies 0.1, 0.2, … 1.0, in another order.
  std::vector<std::vector<double>> accuracy;
  for (std::size_t run = 0; run < 10; ++run) {
    std::vector<double> records;
    for (std::size_t i = 0; i < 3; ++i) records.push_back(0.1 * static_cast<double>((run + i) % 10 + 1));
    accuracy.push_back(records);
  }
  const std::vector<double> loss(3, 0.5);
  std::vector<RunCurves> runs;
  for (const std::vector<double>& records : accuracy) runs.push_back({loss, records, {{20, 0.3}}});
  const auto spec = nlohmann::json::parse(seeds_figure(runs, 10));
  const auto& panel = spec["vconcat"][1]["layer"];
  const auto& rows = panel[0]["data"]["values"];
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[2]["step"], 20);
  EXPECT_NEAR(rows[2]["median"].get<double>(), 0.55, 1e-12);
  EXPECT_NEAR(rows[2]["low"].get<double>(), 0.19, 1e-12);
  EXPECT_NEAR(rows[2]["upper"].get<double>(), 0.775, 1e-12);
  EXPECT_EQ(panel[1]["data"]["values"].size(), 10U);
}

TEST(Figures, GroupsStandBesideTheBound) {
  const std::vector<GroupResult> results{{0, 0.2}, {1, 0.3}, {1, 0.5}, {4, 0.9}, {8, 0.6}};
  const auto spec = nlohmann::json::parse(groups_figure(results, NormKind::layer, 16));
  const auto& layers = spec["vconcat"][0]["layer"];
  EXPECT_EQ(layers[0]["data"]["values"].size(), 4U);
  EXPECT_DOUBLE_EQ(layers[1]["data"]["values"][0]["accuracy"].get<double>(), 0.4);
  EXPECT_DOUBLE_EQ(layers[2]["data"]["values"][0]["accuracy"].get<double>(), 0.2);
  // Groups of two have no bound.
  const auto& bounds = spec["vconcat"][1]["data"]["values"];
  ASSERT_EQ(bounds.size(), 2U);
  EXPECT_NEAR(bounds[1]["bound"].get<double>(), 4.0 * 8.0 / 14.0, 1e-4);
}

TEST(Figures, TheMorphsStatesAreTheSamplesAndTheLayers) {
  const Dataset data = spiral(20, 1);
  const Net net = Trainer({}, data).net();
  const auto result = nlohmann::json::parse(morph(net, data));
  EXPECT_EQ(result["schema"], "normscope.morph/1");
  EXPECT_EQ(result["width"], 3);
  EXPECT_EQ(result["labels"].get<std::vector<std::uint32_t>>(), data.labels);
  const auto& states = result["states"];
  ASSERT_EQ(states.size(), 3U);
  const std::vector<std::vector<double>> outputs = trace(net, data.view());
  for (std::size_t row = 0; row < data.rows(); ++row) {
    EXPECT_NEAR(states[0][row][0].get<double>(), data.x[2 * row], 5e-5);
    EXPECT_EQ(states[0][row][2], 0.0);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(states[1][row][i].get<double>(), outputs[0][3 * row + i], 5e-5);
      EXPECT_NEAR(states[2][row][i].get<double>(), outputs[1][3 * row + i], 5e-5);
    }
  }
}

TEST(Figures, FramesOfAMorphLieOnTheLineBetweenStates) {
  const Dataset data = spiral(20, 1);
  const Net net = Trainer({}, data).net();
  const std::vector<std::vector<double>> outputs = trace(net, data.view());
  EXPECT_EQ(morph_frame(net, data, 1.0), outputs[0]);
  EXPECT_EQ(morph_frame(net, data, 2.0), outputs[1]);
  const std::vector<double> begin = morph_frame(net, data, 0.0);
  const std::vector<double> between = morph_frame(net, data, 0.25);
  for (std::size_t row = 0; row < data.rows(); ++row) {
    EXPECT_EQ(begin[3 * row + 1], data.x[2 * row + 1]);
    EXPECT_EQ(begin[3 * row + 2], 0.0);
    for (std::size_t i = 3 * row; i < 3 * row + 3; ++i) {
      EXPECT_NEAR(between[i], 0.75 * begin[i] + 0.25 * outputs[0][i], 1e-15);
    }
  }
}

}  // namespace
}  // namespace normscope::lnnet
