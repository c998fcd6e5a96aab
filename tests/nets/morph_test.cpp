#include <normscope/nets/circle.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/tasks.hpp>

namespace normscope::nets {
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

TEST(Morph, StepsAreTheLinearMapAndThenTheNorm) {
  const Dataset data = spiral(20, 1);
  const Net net = Trainer({}, data).net();
  const MorphStates states = morph_states(net, data.view());
  const MorphStates steps = morph_steps(net, data.view());
  ASSERT_EQ(steps.width, 3);
  ASSERT_EQ(steps.list.size(), 5);
  for (std::size_t l = 0; l <= 2; ++l) EXPECT_EQ(steps.list[2 * l], states.list[l]);
  for (std::size_t l = 0; l < 2; ++l) {
    const Layer& layer = net.layers[l];
    for (std::size_t row = 0; row < data.rows(); ++row) {
      const double* linear = &steps.list[2 * l + 1][3 * row];
      const double* after = &steps.list[2 * l + 2][3 * row];
      const double length = std::hypot(linear[0], linear[1], linear[2]);
      for (std::size_t out = 0; out < 3; ++out) {
        double sum = layer.bias[out];
        for (std::size_t in = 0; in < layer.in; ++in) {
          sum += layer.weight[out * layer.in + in] * states.list[l][3 * row + in];
        }
        EXPECT_NEAR(linear[out], sum, 1e-14);
        EXPECT_NEAR(after[out], linear[out] / std::sqrt(length * length + layer.norm.eps), 1e-12);
      }
    }
  }
}

}  // namespace
}  // namespace normscope::nets
