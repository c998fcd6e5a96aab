#include <normscope/results/figures.hpp>

#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/selectability/select.hpp>

namespace normscope::selectability {
namespace {

TEST(AttentionBars, AreWithTheirAnswers) {
  const std::vector<double> keys{0, 0, 1, 0, 0.5, 0};
  const MatrixView<const double> view(keys.data(), 3, 2);
  const nlohmann::json figure = figures::attention_bars(attention_weights(view, std::vector{0.0, 0.0}),
                                                        selectability::select_keys(view));
  EXPECT_EQ(figure["data"]["name"], "weights");
  ASSERT_EQ(figure["data"]["values"].size(), 3);
  EXPECT_EQ(figure["data"]["values"][2]["answer"], "unselectable");
  EXPECT_NEAR(figure["data"]["values"][1]["weight"].get<double>(), 1.0 / 3.0, 1e-15);
}

}  // namespace
}  // namespace normscope::selectability
