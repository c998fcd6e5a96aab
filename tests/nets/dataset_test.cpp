#include <normscope/nets/train.hpp>

#include <gtest/gtest.h>

namespace normscope::nets {
namespace {

TEST(Dataset, ConflictsAreEqualRowsWithOtherLabels) {
  Dataset data{
      .width = 2, .classes = 3, .x = {1, 2, 3, 4, 1, 2, 3, 4, 3, 4, 5, 6}, .labels = {0, 1, 0, 2, 1, 2}};
  const Conflicts found = conflicts(data);
  EXPECT_EQ(found.rows, 1U);
  EXPECT_EQ(found.first, 3U);
  EXPECT_EQ(found.of, 1U);
  data.labels[3] = 1;
  EXPECT_EQ(conflicts(data).rows, 0U);
}

}  // namespace
}  // namespace normscope::nets
