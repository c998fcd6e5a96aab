#include <cmath>
#include <filesystem>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/tasks.hpp>
#include <normscope/nets/train.hpp>
#include <normscope/nets/train_runs.hpp>

#include "support/norms.hpp"
#include "support/scratch.hpp"

namespace normscope::nets {
namespace {

Dataset noise(std::size_t rows, std::size_t width, std::size_t classes) {
  Random random(17);
  Dataset data{.width = width, .classes = classes};
  for (std::size_t i = 0; i < rows * width; ++i) data.x.push_back(random.normal());
  for (std::size_t i = 0; i < rows; ++i)
    data.labels.push_back(static_cast<std::uint32_t>(random.below(classes)));
  return data;
}

struct Case {
  const char* name;
  TrainSpec spec;
  std::size_t width;
  std::size_t classes;
};

/// Also the name of the test.
void PrintTo(const Case& given, std::ostream* out) { *out << given.name; }

class TrainCases : public testing::TestWithParam<Case> {};

TEST_P(TrainCases, GradientsMatchFiniteDifferences) {
  const Case& c = GetParam();
  // 150 rows are no multiple of the block size, so the last block is padded.
  Trainer trainer(c.spec, noise(150, c.width, c.classes));
  const std::vector<double> gradient = trainer.gradient();
  std::vector<double> parameters = trainer.parameters();
  ASSERT_EQ(gradient.size(), parameters.size());
  Random random(3);
  // Gains other than one, so that a missing factor would be detected.
  for (double& value : parameters) value += 0.1 * random.normal();
  trainer.set_parameters(parameters);
  const std::vector<double> moved = trainer.gradient();
  double largest = 0.0;
  for (const double value : moved) largest = std::max(largest, std::abs(value));
  const double h = 1e-5;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const double at = parameters[i];
    const auto loss = [&](double value) {
      parameters[i] = value;
      trainer.set_parameters(parameters);
      return trainer.score().loss;
    };
    const double slope = (loss(at + h) - loss(at - h)) / (2.0 * h);
    parameters[i] = at;
    EXPECT_NEAR(moved[i], slope, 1e-7 * std::max(1.0, largest)) << "parameter " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Train, TrainCases,
    testing::Values(
        Case{"spherical", {.width = 3, .depth = 2}, 2, 2},
        Case{"spherical_affine", {.width = 3, .depth = 2, .affine = true}, 2, 2},
        Case{"layer", {.width = 5, .depth = 2, .norm = NormKind::layer}, 3, 3},
        Case{"layer_affine", {.width = 5, .depth = 2, .norm = NormKind::layer, .affine = true}, 3, 3},
        Case{"rms", {.width = 4, .depth = 3, .norm = NormKind::rms, .affine = true}, 3, 2},
        Case{"grouped",
             {.width = 12, .depth = 2, .norm = NormKind::layer, .groups = 3, .affine = true},
             3,
             10},
        Case{"grouped_spherical", {.width = 6, .depth = 2, .groups = 2}, 3, 2},
        Case{"large_eps", {.width = 5, .depth = 2, .norm = NormKind::layer, .eps = 0.5}, 3, 2},
        Case{"whole_vectors", {.width = 16, .depth = 2, .norm = NormKind::layer}, 16, 3},
        Case{"more_than_vectors", {.width = 21, .depth = 2, .norm = NormKind::layer}, 19, 3},
        Case{"gelu", {.width = 5, .depth = 2, .activation = Activation::gelu}, 3, 3},
        Case{"relu", {.width = 5, .depth = 2, .activation = Activation::relu}, 3, 2},
        Case{"linear", {.width = 5, .depth = 2, .activation = Activation::none}, 3, 2},
        Case{"head_alone", {.depth = 0}, 3, 4}),
    [](const auto& instance) { return std::string(instance.param.name); });

// What is trained and what is evaluated afterwards are two implementations of the norm.
TEST(Train, EveryKindOfTheTableIsThatOfTheNet) {
  const Dataset data = noise(40, 3, 3);
  for (const NormKind kind : normscope::test::normalizing_kinds()) {
    for (const std::size_t groups : {1, 2}) {
      const Trainer trainer({.width = 6, .depth = 1, .norm = kind, .groups = groups}, data);
      const std::vector<double> logits = evaluate(trainer.net(), data.view());
      double loss = 0.0;
      for (std::size_t i = 0; i < data.rows(); ++i) {
        const double* const row = logits.data() + 3 * i;
        loss += std::log(std::exp(row[0]) + std::exp(row[1]) + std::exp(row[2])) - row[data.labels[i]];
      }
      EXPECT_NEAR(trainer.score().loss, loss / 40.0, 1e-12) << to_string(kind) << " groups " << groups;
    }
  }
}

TEST(Train, OrthogonalWeightsAreOrthonormal) {
  const Trainer trainer({.width = 6, .depth = 2, .initialization = Initialization::orthogonal},
                        noise(20, 9, 5));
  const Net net = trainer.net();
  // 6 rows of 9, 6 of 6, 5 of 6: never more rows than columns.
  std::vector<const Layer*> layers;
  for (const Layer& layer : net.layers) layers.push_back(&layer);
  layers.push_back(&net.head);
  double squares = 0.0;
  for (const Layer* const layer : layers) {
    for (std::size_t a = 0; a < layer->out; ++a) {
      for (std::size_t b = 0; b <= a; ++b) {
        double product = 0.0;
        for (std::size_t j = 0; j < layer->in; ++j) {
          product += layer->weight[a * layer->in + j] * layer->weight[b * layer->in + j];
        }
        EXPECT_NEAR(product, a == b ? 1.0 : 0.0, 1e-14);
      }
      squares += layer->bias[a] * layer->bias[a];
    }
  }
  EXPECT_NEAR(std::sqrt(squares / 17.0), 0.5, 0.2);
  EXPECT_THROW(static_cast<void>(initialization("zero")), Error);
}

TEST(Train, TheNetIsWhatWasTrained) {
  for (const std::size_t classes : {std::size_t{2}, std::size_t{5}}) {
    const Dataset data = noise(300, 4, classes);
    Trainer trainer(
        {.width = 6, .depth = 2, .norm = NormKind::layer, .groups = 2, .affine = true, .steps = 50}, data);
    while (!trainer.done()) trainer.step();
    const std::vector<std::int64_t> got = labels(trainer.net(), data.view());
    std::size_t correct = 0;
    for (std::size_t i = 0; i < data.rows(); ++i) correct += got[i] == data.labels[i] ? 1 : 0;
    EXPECT_DOUBLE_EQ(trainer.score().accuracy, static_cast<double>(correct) / 300.0);
  }
}

TEST(Train, ThreadsDoNotChangeABit) {
  for (const Dtype precision : {Dtype::F64, Dtype::F32}) {
    const TrainSpec spec{.width = 64,
                         .depth = 2,
                         .norm = NormKind::layer,
                         .groups = 4,
                         .steps = 4,
                         .batch = 1500,
                         .precision = precision};
    const Dataset data = noise(2000, 70, 7);
    const auto run = [&](unsigned threads) {
      Trainer trainer(spec, data, threads);
      while (!trainer.done()) trainer.step();
      return trainer.parameters();
    };
    const std::vector<double> one = run(1);
    EXPECT_EQ(run(2), one);
    EXPECT_EQ(run(5), one);
  }
}

TEST(Train, SinglePrecisionFollowsDouble) {
  TrainSpec spec{.width = 48,
                 .depth = 2,
                 .norm = NormKind::layer,
                 .groups = 4,
                 .optimizer = Optimizer::sgd,
                 .steps = 20};
  const Dataset data = noise(200, 40, 7);
  Trainer exact(spec, data);
  spec.precision = Dtype::F32;
  Trainer single(spec, data);
  while (!exact.done()) {
    exact.step();
    single.step();
  }
  EXPECT_NEAR(single.score().loss, exact.score().loss, 1e-4);
}

TEST(Train, ResumesBitwise) {
  const test::Scratch scratch;
  const std::filesystem::path path = scratch / "train.safetensors";
  for (const Dtype precision : {Dtype::F64, Dtype::F32}) {
    // Mini-batches, and a stop in the middle of an epoch and between two records.
    const TrainSpec spec{.width = 6,
                         .depth = 2,
                         .schedule = Schedule::cosine,
                         .steps = 60,
                         .batch = 64,
                         .precision = precision};
    const Dataset data = noise(300, 4, 3);
    Trainer whole(spec, data);
    while (!whole.done()) whole.step();
    Trainer stopped(spec, data);
    while (stopped.steps_done() < 33) stopped.step();
    stopped.save(path);
    Trainer continued(spec, data);
    continued.resume(path);
    EXPECT_EQ(continued.steps_done(), 33U);
    while (!continued.done()) continued.step();
    EXPECT_EQ(continued.parameters(), whole.parameters());
    EXPECT_TRUE(std::equal(whole.loss().begin(), whole.loss().end(), continued.loss().begin(),
                           continued.loss().end()));
  }
}

TEST(Train, ResumesFromAStateBitwise) {
  const TrainSpec spec{.steps = 50, .batch = 7};
  const Dataset data = xor_corners(40, 3);
  Trainer whole(spec, data);
  while (whole.steps_done() < 23) whole.step();
  TrainState state = whole.state();
  Trainer continued(spec, data);
  continued.resume(state);
  while (!whole.done()) whole.step();
  while (!continued.done()) continued.step();
  EXPECT_EQ(continued.state().parameters, whole.state().parameters);
  EXPECT_EQ(continued.state().accuracy, whole.state().accuracy);
  state.loss.pop_back();
  EXPECT_THROW(continued.resume(state), Error);
  EXPECT_THROW(Trainer({.steps = 22}, data).resume(whole.state()), Error);
}

TEST(Train, AStateOfSomethingElseIsRefused) {
  const test::Scratch scratch;
  const std::filesystem::path path = scratch / "train.safetensors";
  const TrainSpec spec{.steps = 5};
  Trainer(spec, xor_corners(20, 1)).save(path);
  TrainSpec other = spec;
  other.seed = 2;
  EXPECT_THROW(Trainer(other, xor_corners(20, 1)).resume(path), Error);
  EXPECT_THROW(Trainer(spec, xor_corners(20, 2)).resume(path), Error);
  EXPECT_NO_THROW(Trainer(spec, xor_corners(20, 1)).resume(path));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THROW(Trainer(spec, xor_corners(20, 1)).resume(path), Error);
}

TEST(Train, TransitionsAreGainsOverTheBestBefore) {
  // A plateau, a jump within 100 steps at step 600, and a spike that recovers.
  std::vector<double> accuracy(200, 0.75);
  for (std::size_t i = 65; i < accuracy.size(); ++i) accuracy[i] = 0.97;
  for (std::size_t i = 120; i < 125; ++i) accuracy[i] = 0.6;
  const std::vector<Transition> found = transitions(accuracy, 10);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NEAR(found[0].gain, 0.22, 1e-12);
  EXPECT_LE(found[0].step, 650U);
  EXPECT_GE(found[0].step + 100, 650U);
  EXPECT_TRUE(transitions(std::vector<double>(200, 0.5), 10).empty());
  EXPECT_EQ(first_step_at(accuracy, 10, 0.95, 2000), 650U);
}

TEST(Train, BadInputIsNamed) {
  const auto message = [](const TrainSpec& spec, const Dataset& data) -> std::string {
    try {
      const Trainer trainer(spec, data);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message({}, {}), "train: the samples are 0 x 0, expected at least one row and one feature");
  EXPECT_EQ(message({}, {.width = 1, .classes = 1, .x = {1.0}, .labels = {0}}),
            "train: 1 class, expected at least 2");
  EXPECT_EQ(message({}, {.width = 1, .classes = 2, .x = {NAN}, .labels = {0}}),
            "train: row 0 holds nan, expected finite numbers");
  EXPECT_EQ(message({.width = 4, .groups = 3}, xor_corners(4, 1)), "train: 3 groups do not divide width 4");
  EXPECT_EQ(message({.width = 1, .norm = NormKind::layer}, xor_corners(4, 1)),
            "train: width 1 in 1 group leaves a layer norm one feature, which it makes constant; expected at "
            "least 2");
  EXPECT_EQ(message({.eps = 0.0}, xor_corners(4, 1)), "train: eps is 0, expected a finite number > 0");
  EXPECT_THROW(static_cast<void>(dataset("y", 1, {1.0, 2.0}, {0.0, 0.5})), Error);
  EXPECT_THROW(static_cast<void>(dataset("y", 1, {1.0, 2.0}, {0.0, -1.0})), Error);
}

TEST(Train, SpiralIsLearnedByThreeFeatures) {
  std::size_t successes = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Trainer trainer({.seed = seed}, spiral(300, seed));
    while (!trainer.done()) trainer.step();
    successes += trainer.score(spiral(4000, seed + 1000)).accuracy > 0.98 ? 1 : 0;
  }
  EXPECT_GE(successes, 3U);
  Trainer linear({.activation = Activation::none, .steps = 2000}, spiral(300, 1));
  while (!linear.done()) linear.step();
  EXPECT_LT(linear.score().accuracy, 0.75);
}

TrainPlan quick() { return {.spec = {.width = 4, .depth = 1, .norm = NormKind::layer, .steps = 10}}; }

TEST(TrainRuns, SeveralCountsOfGroupsComeWithALinearClassifierAndEverySeed) {
  TrainPlan plan = quick();
  plan.groups = {1, 2};
  plan.seeds = 2;
  const std::vector<TrainRun> runs = train_all(plan, data_of(xor_corners(30, 1)));
  ASSERT_EQ(runs.size(), 6U);
  const std::vector<std::size_t> groups{1, 1, 1, 1, 2, 2};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].linear(), i < 2);
    EXPECT_EQ(runs[i].spec().groups, groups[i]);
    EXPECT_EQ(runs[i].spec().seed, 1 + i % 2);
    EXPECT_LE(runs[i].accuracy(), best_of(runs).accuracy());
    EXPECT_FALSE(runs[i].test);
  }
}

TEST(TrainRuns, ATaskIsTestedOnNewSamples) {
  const std::optional<Task> task = find_task("xor");
  const std::vector<TrainRun> runs = train_all(quick(), data_of(*task, 20));
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].trainer.data().rows(), 20U);
  EXPECT_TRUE(runs[0].test);
  EXPECT_EQ(runs[0].accuracy(), runs[0].test->accuracy);
}

TEST(TrainRuns, AStateIsOfOneTraining) {
  const test::Scratch scratch;
  TrainPlan plan = quick();
  plan.state = scratch / "state";
  plan.seeds = 2;
  EXPECT_THROW(static_cast<void>(train_all(plan, data_of(xor_corners(30, 1)))), Error);
  plan.seeds = 1;
  const std::vector<TrainRun> first = train_all(plan, data_of(xor_corners(30, 1)));
  const std::vector<TrainRun> resumed = train_all(plan, data_of(xor_corners(30, 1)));
  EXPECT_EQ(first[0].trainer.parameters(), resumed[0].trainer.parameters());
}

}  // namespace

}  // namespace normscope::nets
