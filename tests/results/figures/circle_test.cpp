#include <normscope/results/figures.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace normscope::figures {
namespace {

TEST(CircleFigures, AreSpecificationsWithATitle) {
  for (const nlohmann::json figure : {stretched_circle(), folded_circle(), circle_surface()}) {
    EXPECT_NE(figure["$schema"].get<std::string>().find("vega-lite"), std::string::npos);
    EXPECT_TRUE(figure["title"]["text"].is_string());
  }
}

TEST(CircleFigures, CirclesAreAtLengthOne) {
  for (const nlohmann::json figure : {stretched_circle(), folded_circle()}) {
    for (const auto& point : figure["vconcat"][0]["data"]["values"]) {
      const double x = point["x"].get<double>();
      const double y = point["y"].get<double>();
      EXPECT_NEAR(x * x + y * y, 1.0, 3e-4);
    }
    EXPECT_EQ(figure["vconcat"][1]["data"]["values"].size(), 5U * 201U);
  }
}

}  // namespace
}  // namespace normscope::figures
