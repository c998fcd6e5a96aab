#include <normscope/results/figures.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/tasks.hpp>

namespace normscope::figures {
namespace {

using nets::Net;
using nets::Transition;
using nets::xor_corners;

TEST(TrainingFigures, CurvesHoldEveryRecordAndTransition) {
  const std::vector<double> loss{0.7, 0.5, 0.1};
  const std::vector<double> accuracy{0.5, 0.7, 0.9};
  const std::vector<Transition> marks{{5, 0.2}};
  const nlohmann::json spec = training_curves(loss, accuracy, 5, marks);
  EXPECT_EQ(spec["datasets"]["records"].size(), 3U);
  EXPECT_EQ(spec["datasets"]["records"][2]["step"], 10);
  EXPECT_EQ(spec["datasets"]["transitions"][0]["step"], 5);
  const auto& layers = spec["vconcat"][0]["layer"];
  EXPECT_EQ(layers[0]["data"]["name"], "records");
  EXPECT_EQ(layers[1]["data"]["name"], "transitions");
  EXPECT_EQ(layers[0]["encoding"]["y"]["scale"]["type"], "log");
}

TEST(TrainingFigures, TheBoundaryIsTheNets) {
  // Class 1 where x > 0.
  const Net net{.head = {.in = 2, .out = 2, .weight = {0, 0, 1, 0}, .bias = {0, 0}}};
  const nlohmann::json spec = decision_boundary(net, xor_corners(50, 1), 10);
  EXPECT_EQ(spec["layer"][1]["data"]["values"].size(), 50U);
  for (const auto& cell : spec["layer"][0]["data"]["values"]) {
    EXPECT_EQ(cell["class"], cell["x"].get<double>() + cell["x2"].get<double>() > 0.0 ? 1 : 0);
  }
}

TEST(TrainingFigures, SeedsAreADistribution) {
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
  const nlohmann::json spec = training_seeds(runs, 10);
  const auto& panel = spec["vconcat"][1]["layer"];
  const auto& rows = panel[0]["data"]["values"];
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[2]["step"], 20);
  EXPECT_NEAR(rows[2]["median"].get<double>(), 0.55, 1e-12);
  EXPECT_NEAR(rows[2]["low"].get<double>(), 0.19, 1e-12);
  EXPECT_NEAR(rows[2]["upper"].get<double>(), 0.775, 1e-12);
  EXPECT_EQ(panel[1]["data"]["values"].size(), 10U);
}

TEST(TrainingFigures, GroupsStandBesideTheBound) {
  const std::vector<GroupResult> results{{0, 0.2}, {1, 0.3}, {1, 0.5}, {4, 0.9}, {8, 0.6}};
  const nlohmann::json spec = accuracy_over_groups(results, NormKind::layer, 16);
  const auto& layers = spec["vconcat"][0]["layer"];
  EXPECT_EQ(layers[0]["data"]["values"].size(), 4U);
  EXPECT_DOUBLE_EQ(layers[1]["data"]["values"][0]["accuracy"].get<double>(), 0.4);
  EXPECT_DOUBLE_EQ(layers[2]["data"]["values"][0]["accuracy"].get<double>(), 0.2);
  // Groups of two have no bound.
  const auto& bounds = spec["vconcat"][1]["data"]["values"];
  ASSERT_EQ(bounds.size(), 2U);
  EXPECT_NEAR(bounds[1]["bound"].get<double>(), 4.0 * 8.0 / 14.0, 1e-4);
}

}  // namespace
}  // namespace normscope::figures
