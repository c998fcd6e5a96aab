#include <normscope/lnnet/figures.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace normscope::lnnet {
namespace {

TEST(Figures, CurvesHoldEveryRecordAndTransition) {
  const std::vector<double> loss{0.7, 0.5, 0.1};
  const std::vector<double> accuracy{0.5, 0.7, 0.9};
  const std::vector<Transition> marks{{5, 0.2}};
  const auto spec = nlohmann::json::parse(curves_figure(loss, accuracy, 5, marks));
  const auto& layers = spec["vconcat"][0]["layer"];
  EXPECT_EQ(layers[0]["data"]["values"].size(), 3U);
  EXPECT_EQ(layers[0]["data"]["values"][2]["step"], 10);
  EXPECT_EQ(layers[1]["data"]["values"][0]["step"], 5);
  EXPECT_EQ(layers[0]["encoding"]["y"]["scale"]["type"], "log");
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

TEST(Figures, TheMorphGoesFromTheSamplesThroughTheLayers) {
  const Trainer trainer({}, spiral(20, 1));
  const auto result = nlohmann::json::parse(morph(trainer.net(), spiral(20, 1)));
  EXPECT_EQ(result["width"], 3);
  ASSERT_EQ(result["states"].size(), 3U);
  EXPECT_EQ(result["states"][0][7][2], 0.0);
  double square = 0.0;
  for (const double value : result["states"][2][7]) square += value * value;
  EXPECT_NEAR(square, 1.0, 1e-3);
}

}  // namespace
}  // namespace normscope::lnnet
