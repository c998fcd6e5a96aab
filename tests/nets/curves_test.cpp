#include <normscope/nets/circle.hpp>

#include <gtest/gtest.h>

namespace normscope::nets {
namespace {

TEST(Curves, ThinnedCurvesKeepTheFirstAndTheLastRecord) {
  std::vector<double> loss(1001);
  std::vector<double> accuracy(loss.size());
  for (std::size_t i = 0; i < loss.size(); ++i) loss[i] = accuracy[i] = static_cast<double>(i);
  for (const std::size_t most : {1U, 3U, 100U, 1000U, 5000U}) {
    const Curves shown = thinned(loss, accuracy, 10, most);
    EXPECT_LE(shown.step.size(), most + 1);
    EXPECT_EQ(shown.step.front(), 0.0);
    EXPECT_EQ(shown.step.back(), 10000.0);
    for (std::size_t i = 0; i < shown.step.size(); ++i) {
      EXPECT_EQ(shown.step[i], 10.0 * shown.loss[i]);
      EXPECT_EQ(shown.loss[i], shown.accuracy[i]);
    }
  }
  EXPECT_TRUE(thinned({}, {}, 10, 5).step.empty());
}

}  // namespace
}  // namespace normscope::nets
