#include <normscope/results/figures.hpp>

#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/core/random.hpp>

namespace normscope::figures {
namespace {

TEST(CurvatureFigure, HoldsEveryGroupCountAndItsBound) {
  constexpr std::size_t width = 24;
  Random random(1);
  std::vector<double> x(20 * width);
  for (double& value : x) value = random.normal();
  const NormSpec spec{.width = width, .eps = 0.0};
  const std::vector<std::size_t> counts = norm::curving_group_counts(spec.kind, width);
  const auto results = norm::compare_groups(spec, {x.data(), 20, width}, counts);
  const nlohmann::json figure = group_curvature(results);
  const auto& rows = figure["data"]["values"];
  ASSERT_EQ(rows.size(), 3 * counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    EXPECT_EQ(rows[3 * i + 1]["groups"], counts[i]);
    EXPECT_EQ(rows[3 * i + 1]["ratio"], results[i].least);
    EXPECT_EQ(rows[3 * i + 2]["ratio"], *results[i].bound);
  }
}

TEST(CurvatureFigure, LeavesOutUnknownNumbers) {
  norm::GroupCurvature unknown;
  unknown.groups = 4;
  unknown.ratio = 3.0;
  unknown.least = 2.0;
  const std::vector<norm::GroupCurvature> one{unknown};
  EXPECT_EQ(group_curvature(one)["data"]["values"].size(), 2);
  unknown.ratio = std::nan("");
  const std::vector<norm::GroupCurvature> less{unknown};
  EXPECT_EQ(group_curvature(less)["data"]["values"].size(), 1);
}

}  // namespace
}  // namespace normscope::figures
