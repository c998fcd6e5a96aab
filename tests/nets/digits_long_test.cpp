#include <memory>
#include <optional>

#include <gtest/gtest.h>

#include <normscope/nets/tasks.hpp>

#include "support/data.hpp"

namespace normscope::nets {
namespace {

TEST(Images, ScalingIsThatOfTheTrainingPixels) {
  NORMSCOPE_NEED_DATA(folder, "mnist");
  const Dataset data = mnist(folder, Part::train);
  double sum = 0.0;
  double squares = 0.0;
  for (const double value : data.x) {
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(data.x.size());
  EXPECT_NEAR(sum / count, 0.0, 1e-3);
  EXPECT_NEAR(squares / count, 1.0, 1e-3);
}

TEST(Images, NormNetsLearnDigitsThatALinearNetDoesNot) {
  NORMSCOPE_NEED_DATA(folder, "mnist");
  const std::optional<Task> task = find_task("mnist:" + folder.string());
  const auto data = std::make_shared<const Dataset>(task->make(10'000, 1));
  const Dataset test = mnist(folder, Part::test);
  const auto accuracy = [&](Activation activation) {
    TrainSpec spec = task->spec;
    spec.activation = activation;
    spec.width = 64;
    spec.rate = 0.01;
    spec.steps = 600;
    Trainer trainer(spec, data);
    while (!trainer.done()) trainer.step();
    return trainer.score(test).accuracy;
  };
  const double linear = accuracy(Activation::none);
  EXPECT_GT(linear, 0.88);
  EXPECT_GT(accuracy(Activation::norm), linear + 0.02);
}

}  // namespace
}  // namespace normscope::nets
