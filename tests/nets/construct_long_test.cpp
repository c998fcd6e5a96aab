#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/nets/construct.hpp>
#include <normscope/nets/tasks.hpp>

#include "nets/labellings.hpp"
#include "nets/nets.hpp"
#include "support/data.hpp"

namespace normscope::nets {
namespace {

using nets::Precision;
using test::random_values;

TEST(Construct, EveryLabellingOfLPlusTwoPointsTakesLLayers) {
  for (std::size_t depth = 1; depth <= 10; ++depth) {
    const std::size_t points = depth + 2;
    const std::vector<double> x = random_values(points * 2, depth);
    for (std::uint64_t labelling = 0; labelling < std::uint64_t{1} << points; ++labelling) {
      std::vector<std::int64_t> wanted(points);
      for (std::size_t i = 0; i < points; ++i) wanted[i] = static_cast<std::int64_t>(labelling >> i & 1);
      const Construction made = construct({x.data(), points, 2}, wanted, {.threads = 1});
      ASSERT_EQ(made.correct, points) << depth << " " << labelling;
      ASSERT_LE(made.net.layers.size(), depth) << labelling;
    }
  }
}

TEST(Construct, ManyRandomLabels) {
  for (const std::uint64_t classes : {2, 3, 10}) {
    const std::size_t rows = 4000;
    const std::vector<double> x = random_values(rows * 8, classes);
    const std::vector<std::int64_t> wanted = random_labels(rows, classes, classes);
    const Construction made = construct({x.data(), rows, 8}, wanted);
    EXPECT_EQ(made.correct, rows);
    EXPECT_LE(made.net.layers.size(), rows - classes);
    // The first of them by other code; `correct` counts all.
    EXPECT_EQ(replay<double>(made.net, {x.data(), 256, 8}, false),
              std::vector(wanted.begin(), wanted.begin() + 256));
  }
}

TEST(Construct, WeightsStayExactUnderOtherRounding) {
  const auto errors = [](std::size_t rows, auto number, bool backwards) {
    const std::vector<double> x = random_values(rows * 4, 11);
    const std::vector<std::int64_t> wanted = random_labels(rows, 2, 12);
    const Construction made = construct({x.data(), rows, 4}, wanted);
    const std::size_t tried = std::min<std::size_t>(rows, 512);
    const std::vector<std::int64_t> given =
        replay<decltype(number)>(made.net, {x.data(), tried, 4}, backwards);
    std::size_t wrong = 0;
    for (std::size_t row = 0; row < tried; ++row) wrong += given[row] != wanted[row] ? 1 : 0;
    return wrong;
  };
  // Another order of summation and a wider type, at a size where the published weights would be lost.
  EXPECT_EQ(errors(4096, 0.0, true), 0U);
  EXPECT_EQ(errors(2048, 0.0L, false), 0U);
  // Float32 tells some dozens of samples apart, not thousands.
  EXPECT_EQ(errors(32, 0.0F, false), 0U);
  EXPECT_GT(errors(4096, 0.0F, false), 0U);
}

/// How many of 20 random labellings of `rows` normal numbers paper mode gets right.
std::size_t paper_successes(std::size_t rows, Precision precision) {
  std::size_t exact = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<double> x = random_values(rows, seed);
    const Construction made = construct({x.data(), rows, 1}, random_labels(rows, 2, seed + 100),
                                        {.mode = Mode::paper, .seed = seed, .precision = precision});
    EXPECT_LE(made.net.layers.size(), rows - 2);
    exact += made.correct == rows ? 1 : 0;
  }
  return exact;
}

TEST(Construct, PaperModeWorksUntilItsPrecisionEnds) {
  const std::map<std::size_t, std::size_t> float64 = {{64, 20},  {96, 20}, {128, 17},
                                                      {160, 10}, {192, 1}, {256, 0}};
  for (const auto& [rows, successes] : float64) {
    EXPECT_EQ(paper_successes(rows, Precision::float64), successes) << rows;
  }
  // It goes on with 17 of 384, 5 of 448 and none of 512, which take seconds.
  const std::map<std::size_t, std::size_t> double_double = {{256, 20}, {320, 20}};
  for (const auto& [rows, successes] : double_double) {
    EXPECT_EQ(paper_successes(rows, Precision::double_double), successes) << rows;
  }
}

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
