#include <normscope/lnnet/experiments.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace normscope::lnnet {
namespace {

TEST(Experiments, EveryClaimHoldsAndHasItsFigure) {
  for (const Experiment& experiment : experiments()) {
    const Outcome outcome = experiment.run();
    EXPECT_TRUE(outcome.holds) << experiment.name << ": " << outcome.ours;
    const auto figure = nlohmann::json::parse(outcome.figure);
    EXPECT_NE(figure["$schema"].get<std::string>().find("vega-lite"), std::string::npos);
    EXPECT_TRUE(figure["title"]["text"].is_string());
    EXPECT_EQ(find_experiment(experiment.name), &experiment);
  }
  EXPECT_EQ(find_experiment("nothing"), nullptr);
}

TEST(Experiments, CirclesAreAtLengthOne) {
  for (const char* name : {"stretch", "fold"}) {
    const auto figure = nlohmann::json::parse(find_experiment(name)->run().figure);
    for (const auto& point : figure["vconcat"][0]["data"]["values"]) {
      const double x = point["x"].get<double>();
      const double y = point["y"].get<double>();
      EXPECT_NEAR(x * x + y * y, 1.0, 3e-4);
    }
    EXPECT_EQ(figure["vconcat"][1]["data"]["values"].size(), 5U * 201U);
  }
}

}  // namespace
}  // namespace normscope::lnnet
