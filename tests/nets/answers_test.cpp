#include <normscope/nets/answers.hpp>

#include <cmath>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

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

std::vector<double> logits(const Net& net, const Dataset& data) { return evaluate(net, data.view()); }

RC_GTEST_PROP(Recording, KeepsTheSameNetsForEverySlicing, ()) {
  const Dataset data = spiral(40, 1);
  TrainSpec spec;
  spec.steps = 100;
  const auto most = static_cast<std::size_t>(*rc::gen::inRange(2, 20));
  Recording recording(spec, data, most);
  std::map<std::size_t, std::vector<double>> truth;
  Trainer trainer(spec, data);
  truth[0] = logits(trainer.net(), data);
  while (!trainer.done()) {
    trainer.step();
    truth[trainer.steps_done()] = logits(trainer.net(), data);
  }
  while (recording.steps() < spec.steps) {
    recording.advance(static_cast<std::size_t>(*rc::gen::inRange(1, 40)));
    // The interval between records is the smallest power of two that leaves at most `most` records.
    RC_ASSERT(recording.steps() / recording.distance() + 1 <= most);
    RC_ASSERT((recording.distance() == 1 || recording.steps() / (recording.distance() / 2) + 1 > most));
    for (std::size_t step = 0; step <= spec.steps; ++step) {
      const std::size_t kept = recording.kept(step);
      RC_ASSERT(kept <= step);
      RC_ASSERT((kept == recording.steps() || kept % recording.distance() == 0));
      RC_ASSERT((kept == recording.steps() || step - kept < recording.distance()));
      if (step % 7 == 0) RC_ASSERT(logits(recording.net(step), data) == truth[kept]);
    }
  }
}

TEST(Recording, LooksBackWithoutDisturbingTheTraining) {
  const Dataset data = rings(60, 2);
  TrainSpec spec;
  spec.steps = 60;
  Recording looked(spec, data, 8);
  Recording left(spec, data, 8);
  for (std::size_t i = 0; i < 6; ++i) {
    looked.advance(10);
    static_cast<void>(looked.net(5 * i));
  }
  left.advance(1000);
  EXPECT_EQ(left.steps(), 60U);
  EXPECT_EQ(looked.trainer().parameters(), left.trainer().parameters());
  EXPECT_EQ(left.score(0).loss, Trainer(spec, data).score().loss);
  EXPECT_EQ(left.score(60).loss, left.trainer().score().loss);
  const Dataset other = rings(60, 3);
  EXPECT_EQ(left.score(0, other).loss, Trainer(spec, data).score(other).loss);
  EXPECT_EQ(left.score(60, other).accuracy, left.trainer().score(other).accuracy);
}

TEST(Recording, HasTheLossesOfTheExplorersTests) {
  // These numbers stand in explorer/engine/tests/playground.test.ts, where WebAssembly has to give them.
  Recording recording({}, spiral(40, 1));
  recording.advance(50);
  EXPECT_NEAR(recording.score(0).loss, 0.6864009840227115, 1e-9);
  EXPECT_NEAR(recording.score(50).loss, 0.5043784482308873, 1e-9);
}

}  // namespace

}  // namespace normscope::nets
