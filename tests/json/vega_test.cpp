#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/json/vega.hpp>

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
}

}  // namespace
}  // namespace normscope::vega
