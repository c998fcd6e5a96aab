#include <normscope/core/text.hpp>

#include <limits>

#include <gtest/gtest.h>

namespace normscope {
namespace {

TEST(Text, CountsHaveOneOrSeveral) {
  EXPECT_EQ(counted(0, "head"), "0 heads");
  EXPECT_EQ(counted(1, "head"), "1 head");
  EXPECT_EQ(counted(2, "head"), "2 heads");
}

TEST(Text, NumbersAreShownAlikeOnEveryMachine) {
  EXPECT_EQ(shown(0.5), "0.5");
  EXPECT_EQ(shown(1e-300), "1e-300");
  EXPECT_EQ(shown(-std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(shown(-std::numeric_limits<double>::infinity()), "-inf");
}

}  // namespace
}  // namespace normscope
