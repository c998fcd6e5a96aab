#include <normscope/results/figures.hpp>

#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace normscope::selectability {
namespace {

TEST(RandomTableFigure, HoldsEveryCell) {
  const std::vector<RandomCell> cells{{.width = 3, .count = 4, .any = 0.5, .mean = 0.125},
                                      {.width = 4, .count = 4, .any = 0.25, .mean = 0.0}};
  const nlohmann::json spec = figures::random_table(cells, &RandomCell::any, "A title");
  EXPECT_EQ(spec["data"]["values"].size(), 2);
  EXPECT_EQ(spec["data"]["values"][1]["share"], 0.25);
  EXPECT_EQ(spec["title"]["text"], "A title");
}

TEST(RandomTableFigure, OfAnUnfinishedTableHasRoomForAll) {
  const RandomTable table{.most_width = 5, .most_count = 9};
  const nlohmann::json spec =
      figures::random_table(table, {{.width = 3, .count = 4, .any = 0.5}}, &RandomCell::any, "A title");
  EXPECT_EQ(spec["encoding"]["x"]["scale"]["domain"], (nlohmann::json{3, 4, 5}));
  EXPECT_EQ(spec["encoding"]["y"]["scale"]["domain"].size(), 7);
  EXPECT_EQ(spec["data"]["values"].size(), 1);
}

}  // namespace
}  // namespace normscope::selectability
