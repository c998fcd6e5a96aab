#include <normscope/analysis/text.hpp>

#include <gtest/gtest.h>

namespace normscope::analysis {
namespace {

TEST(AuditText, WritesPowersOfEAsLowerBounds) {
  EXPECT_EQ(exp_at_least(2.5), "12.1");
  EXPECT_EQ(exp_at_least(5.0), "148");
  EXPECT_EQ(exp_at_least(13.8155), "999989");
  EXPECT_EQ(exp_at_least(13.8156), "10⁶");
  // The logarithm of 10^9 is 20.72326…
  EXPECT_EQ(exp_at_least(20.7232), "10⁸");
  EXPECT_EQ(exp_at_least(20.7233), "10⁹");
  EXPECT_EQ(exp_at_least(1e4), "10⁴³⁴²");
}

}  // namespace
}  // namespace normscope::analysis
