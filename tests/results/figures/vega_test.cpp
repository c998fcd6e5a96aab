#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/results/figures/vega.hpp>

namespace normscope::vega {
namespace {

using Json = nlohmann::ordered_json;

TEST(Vega, PartsMakeASpecification) {
  const Json spec =
      specification({{"data", values({{{"x", 1.0}}})},
                     {"encoding", {{"x", quantity("x", "width")}, {"y", logarithmic("y", "size")}}}});
  EXPECT_EQ(spec["$schema"], "https://vega.github.io/schema/vega-lite/v5.json");
  EXPECT_EQ(spec["data"]["values"][0]["x"], 1.0);
  EXPECT_EQ(spec["encoding"]["x"], (Json{{"field", "x"}, {"type", "quantitative"}, {"title", "width"}}));
  EXPECT_EQ(spec["encoding"]["y"]["scale"], (Json{{"type", "log"}}));
  EXPECT_EQ(ordinal("layer", "layer")["axis"], (Json{{"format", "d"}}));
}

TEST(Vega, CurvesHaveABandWhereTheirRowsHave) {
  Json rows = {{{"series", "LN"}, {"x", 1}, {"y", 2.0}}};
  EXPECT_EQ(curves(rows, {"step", "loss"})["layer"].size(), 1U);
  rows[0]["low"] = 1.5;
  rows[0]["high"] = 2.5;
  const Json spec = curves(rows, {.x = "step", .y = "loss", .logarithmic_y = true});
  ASSERT_EQ(spec["layer"].size(), 2U);
  EXPECT_EQ(spec["layer"][0]["encoding"]["y2"]["field"], "high");
  EXPECT_EQ(spec["layer"][1]["encoding"]["y"]["scale"]["type"], "log");
  EXPECT_EQ(spec["encoding"]["x"]["title"], "step");
  EXPECT_EQ(spec["data"]["values"], rows);
  EXPECT_EQ(dots(rows, {"groups", "loss"})["layer"].size(), 2U);
}

TEST(Vega, AHeatMapsColoursBeginAtZero) {
  const Json spec = heat_map({{{"x", 3}, {"y", 5}, {"value", 0.1}}}, {"dimension", "keys"}, "share", 1.0);
  EXPECT_EQ(spec["encoding"]["color"]["scale"]["domain"], (Json{0.0, 1.0}));
  EXPECT_EQ(spec["encoding"]["y"]["title"], "keys");
}

}  // namespace
}  // namespace normscope::vega
