#include <normscope/nets/answers.hpp>

#include <cmath>

#include <gtest/gtest.h>

#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/tasks.hpp>
#include <normscope/nets/train.hpp>

namespace normscope::nets {
namespace {

TEST(Answers, AreTheLabelsAndTheirSoftmax) {
  const Dataset data = spiral(50, 3);
  Net net = Trainer({}, data).net();
  net.classes = {7, -2};
  const Answers found = answers(net, data.view());
  EXPECT_EQ(found.classes, labels(net, data.view()));
  const std::vector<double> z = evaluate(net, data.view());
  for (std::size_t row = 0; row < data.rows(); ++row) {
    const double margin = std::abs(z[2 * row + 1] - z[2 * row]);
    EXPECT_NEAR(found.probabilities[row], 1.0 / (1.0 + std::exp(-margin)), 1e-15);
  }
}

TEST(Answers, ProbabilitiesOfAllClassesHaveThatOfTheAnswer) {
  const Dataset data = random_labels(40, 3);
  const Net net = Trainer({.width = 8}, data).net();
  const Answers found = answers(net, data.view());
  const std::vector<double> shares = class_probabilities(net, data.view());
  ASSERT_EQ(shares.size(), 40 * data.classes);
  for (std::size_t row = 0; row < data.rows(); ++row) {
    double total = 0.0;
    for (std::size_t label = 0; label < data.classes; ++label) {
      const double share = shares[row * data.classes + label];
      total += share;
      EXPECT_LE(share, found.probabilities[row] + 1e-15);
    }
    EXPECT_NEAR(total, 1.0, 1e-14);
    const auto answer = static_cast<std::size_t>(found.classes[row]);
    EXPECT_NEAR(shares[row * data.classes + answer], found.probabilities[row], 1e-15);
  }
}

TEST(Answers, AGridSurroundsTheSamples) {
  const Dataset data{.width = 2, .classes = 2, .x = {0, 5, 10, 5}, .labels = {0, 1}};
  const Grid grid = grid_around(data, 4);
  EXPECT_DOUBLE_EQ(grid.left, -0.8);
  EXPECT_DOUBLE_EQ(grid.right, 10.8);
  EXPECT_DOUBLE_EQ(grid.bottom, 4.0);
  EXPECT_DOUBLE_EQ(grid.top, 6.0);
  const std::vector<double> centers = grid.centers();
  ASSERT_EQ(centers.size(), 32U);
  EXPECT_DOUBLE_EQ(centers[0], -0.8 + 1.45);
  EXPECT_DOUBLE_EQ(centers[1], 4.25);
  EXPECT_DOUBLE_EQ(centers[30], 10.8 - 1.45);
  EXPECT_DOUBLE_EQ(centers[31], 5.75);
}

TEST(Answers, MapAndSphereAreInverse) {
  const Dataset data = octants(500, 1);
  const std::vector<double> places = on_map(data.view());
  const std::vector<double> back = on_sphere({places.data(), data.rows(), 2});
  for (std::size_t i = 0; i < data.x.size(); ++i) EXPECT_NEAR(back[i], data.x[i], 1e-14);
  // On the map the octants are a checkerboard of two rows and four columns.
  for (std::size_t row = 0; row < data.rows(); ++row) {
    const auto column = static_cast<int>(std::floor(places[2 * row] / (0.5 * 3.14159265358979323846)));
    const bool above = places[2 * row + 1] > 0.0;
    EXPECT_EQ(data.labels[row], static_cast<std::uint32_t>((column % 2 == 0) == above));
  }
}

}  // namespace
}  // namespace normscope::nets
