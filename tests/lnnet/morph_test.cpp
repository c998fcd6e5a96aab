#include <normscope/lnnet/morph.hpp>

#include <gtest/gtest.h>

#include <normscope/lnnet/evaluate.hpp>
#include <normscope/lnnet/tasks.hpp>

namespace normscope::lnnet {
namespace {

TEST(Morph, FramesLieOnTheLineBetweenStates) {
  const Dataset data = spiral(20, 1);
  const Net net = Trainer({}, data).net();
  const std::vector<std::vector<double>> outputs = trace(net, data.view());
  EXPECT_EQ(morph_frame(net, data, 1.0), outputs[0]);
  EXPECT_EQ(morph_frame(net, data, 2.0), outputs[1]);
  const std::vector<double> begin = morph_frame(net, data, 0.0);
  const std::vector<double> between = morph_frame(net, data, 0.25);
  for (std::size_t row = 0; row < data.rows(); ++row) {
    EXPECT_EQ(begin[3 * row + 1], data.x[2 * row + 1]);
    EXPECT_EQ(begin[3 * row + 2], 0.0);
    for (std::size_t i = 3 * row; i < 3 * row + 3; ++i) {
      EXPECT_NEAR(between[i], 0.75 * begin[i] + 0.25 * outputs[0][i], 1e-15);
    }
  }
}

}  // namespace
}  // namespace normscope::lnnet
