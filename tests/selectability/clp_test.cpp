#include <cmath>

#include <gtest/gtest.h>

#include <normscope/selectability/select.hpp>

#include "selectability/clouds.hpp"
#include "support/hull_lp.hpp"

namespace normscope::selectability {
namespace {

TEST(Select, AgreesWithOneLinearProgramAKey) {
  std::size_t compared = 0;
  std::size_t inside = 0;
  for (std::uint64_t seed = 0; seed < 240; ++seed) {
    Random random(seed);
    const std::size_t width = 1 + random.below(8);
    Keys set = normal_keys(width + 1 + random.below(30), width, seed);
    // Half of them on a grid, where keys lie on edges and on one another.
    if (seed % 2 == 0) {
      for (double& value : set.values) value = std::round(2.0 * value);
    }
    const Selection selection = keys(set.view());
    support::HullPrograms programs(set.view());
    for (std::size_t key = 0; key < set.rows(); ++key) {
      const Answer expected = programs.inside(key) ? Answer::unselectable : Answer::selectable;
      ASSERT_EQ(selection.keys[key].answer, expected) << seed << " " << key;
      ++compared;
      if (expected == Answer::unselectable) ++inside;
    }
  }
  EXPECT_GT(compared, 4000);
  EXPECT_GT(inside, 400);
}

}  // namespace
}  // namespace normscope::selectability
