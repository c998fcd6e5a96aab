#include <normscope/results/figures.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "analysis/norms.hpp"

namespace normscope::analysis {
namespace {

using SideBySide = Norms;

nlohmann::json with_id(const nlohmann::json& charts, const std::string& id) {
  for (const auto& chart : charts) {
    if (chart["id"] == id) return chart;
  }
  return {};
}

TEST_F(SideBySide, BothHaveTheSameAxis) {
  add({1.0, 2.0, 1.0, 1.0});
  const Report before = report();
  add({1.0, 64.0, 1.0, 1.0});
  Report after = report();
  after.name = "trained.safetensors";
  const nlohmann::json charts(figures::side_by_side_charts(before, after));
  const nlohmann::json old_gains = with_id(charts, "gains-old");
  const nlohmann::json new_gains = with_id(charts, "gains-new");
  EXPECT_EQ(old_gains["panel"], "OLD: m.safetensors");
  EXPECT_EQ(new_gains["panel"], "NEW: trained.safetensors");
  EXPECT_EQ(old_gains["question"], new_gains["question"]);
  const auto scale = [](const nlohmann::json& chart) {
    return chart["spec"]["layer"][0]["encoding"]["x"]["scale"];
  };
  EXPECT_EQ(scale(old_gains), scale(new_gains));
  EXPECT_GT(scale(old_gains)["domain"][1], 64.0);
  EXPECT_FALSE(with_id(charts, "gain-map-old").is_null());
  EXPECT_TRUE(with_id(charts, "condition-both").is_null()) << "they have other norms";
}

TEST_F(SideBySide, SaysWhereTheConditionChangedMost) {
  add({1.0, 2.0, 1.0, 1.0});
  add({1.0, 3.0, 1.0, 1.0});
  const Report before = report();
  Report after = before;
  after.norms[1].image->condition *= 2.0;
  const nlohmann::json chart = with_id(figures::side_by_side_charts(before, after), "condition-both");
  ASSERT_EQ(chart["spec"]["data"]["values"].size(), 4U);
  EXPECT_NE(chart["answer"].get<std::string>().find("Most changed is norms.1.norm"), std::string::npos);
  EXPECT_EQ(chart["description"], "Condition numbers of the images of 2 norms in two checkpoints.");
}

TEST_F(SideBySide, NormsAloneAreThoseOfTheReport) {
  add({1.0, 8.0, 1.0, 1.0});
  const Report whole = report();
  const files::Checkpoint file(whole.path);
  const Report norms = audit_norms(file, models::describe(file));
  ASSERT_EQ(norms.norms.size(), 1U);
  EXPECT_EQ(norms.norms[0].image->lengths, whole.norms[0].image->lengths);
  EXPECT_EQ(norms.features.size(), whole.features.size());
  EXPECT_TRUE(norms.findings.empty());
}

}  // namespace
}  // namespace normscope::analysis
