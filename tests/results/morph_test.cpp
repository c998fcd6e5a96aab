#include <normscope/results/documents.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/tasks.hpp>

namespace normscope::nets {
namespace {

TEST(MorphDocument, StatesAreTheSamplesAndTheLayers) {
  const Dataset data = spiral(20, 1);
  const Net net = Trainer({}, data).net();
  const nlohmann::json result = results::morph(net, data);
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

}  // namespace
}  // namespace normscope::nets
