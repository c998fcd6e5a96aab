#include "ellipse.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace normscope::lab {
namespace {

TEST(Ellipse, SmallerEpsIsNearerToTheBorderThatNothingReaches) {
  const std::vector<Figure> figures = ellipse_figures();
  ASSERT_EQ(figures.size(), 2U);
  for (const Figure& figure : figures) {
    double longest = 0.0;
    double shortest = 0.0;
    for (const Json& row : figure.specification["layer"][0]["data"]["values"]) {
      longest = std::max(longest, row["x"].get<double>());
      shortest = std::max(shortest, row["y"].get<double>());
    }
    std::map<std::string, std::vector<double>> radii;
    for (const Json& row : figure.specification["layer"][1]["data"]["values"]) {
      radii[row["series"]].push_back(
          std::hypot(row["x"].get<double>() / longest, row["y"].get<double>() / shortest));
    }
    ASSERT_EQ(radii.size(), 3U);
    const auto middle = [&](const char* series) {
      std::vector<double>& all = radii.at(series);
      EXPECT_LT(*std::max_element(all.begin(), all.end()), 1.0 + 1e-4);  // of five digits
      std::nth_element(all.begin(), all.begin() + 150, all.end());
      return all[150];
    };
    const double near = middle("eps = 0.01");
    const double between = middle("eps = 0.1");
    const double far = middle("eps = 1");
    EXPECT_GT(near, 0.98);
    EXPECT_GT(near, between + 0.02);
    EXPECT_GT(between, far + 0.1);
  }
}

}  // namespace
}  // namespace normscope::lab
