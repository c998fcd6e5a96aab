#include <cmath>

#include <gtest/gtest.h>
#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/nets/tasks.hpp>

#include "training.hpp"

namespace normscope::lab::ln_nets {
namespace {

TEST(Nets, InterruptedTrainingResumesBitwise) {
  const nets::TrainSpec spec{.steps = 120, .batch = 8};
  const auto data = std::make_shared<const nets::Dataset>(nets::xor_corners(40, 3));
  const nets::Dataset test = nets::xor_corners(50, 4);
  const auto perform = [&](lab::Run& run) { train(run, data, {{"test_accuracy", test}}); };
  lab::Run whole(to_json(spec), 7);
  perform(whole);

  lab::Run stopped(to_json(spec), 7,
                   Progress([](std::string_view, std::size_t done, std::size_t) { return done != 37; }));
  EXPECT_THROW(perform(stopped), Error);
  EXPECT_EQ(stopped.step(), 37U);
  perform(stopped);
  EXPECT_EQ(stopped.measured(), whole.measured());
  // Every tenth step's batch, and six numbers at the end.
  EXPECT_EQ(whole.measured().size(), 2U * 12U + 6U);
}

TEST(Nets, AConfigurationIsTheSpec) {
  const nets::TrainSpec spec{.width = 8,
                             .depth = 3,
                             .activation = nets::Activation::relu,
                             .norm = NormKind::layer,
                             .groups = 2,
                             .eps = 1e-3,
                             .rate = 0.5,
                             .schedule = nets::Schedule::cosine,
                             .steps = 9,
                             .batch = 5,
                             .seed = 11,
                             .record_every = 3,
                             .precision = Dtype::F32};
  EXPECT_EQ(spec_of(lab::Run(to_json(spec), 11)), spec);
}

TEST(Nets, MediansAndCountsAreOverTheRuns) {
  std::vector<Done> runs;
  for (const double value : {3.0, 1.0, 2.0, 10.0})
    runs.push_back({.configuration = {}, .seed = runs.size(), .metrics = {{"x", 1, 100.0}, {"x", 2, value}}});
  EXPECT_EQ(median(Results(runs), "x"), 2.5);
  EXPECT_EQ(above(Results(runs), "x", 2.0), 2U);
  runs.pop_back();
  EXPECT_EQ(median(Results(runs), "x"), 2.0);
}

constexpr std::size_t every = 30;
constexpr std::size_t records = 334;

/// A curve over 10,000 steps with 10 % noise.
template <class Loss>
std::vector<double> curve(Loss loss) {
  Random random(1);
  std::vector<double> values;
  for (std::size_t i = 0; i < records; ++i)
    values.push_back(loss(static_cast<double>(i * every)) * std::exp(0.1 * random.normal()));
  return values;
}

TEST(Plateaus, SteadyDecreaseHasNone) {
  EXPECT_TRUE(plateaus(curve([](double) { return 1.0; }), every).empty());
  EXPECT_TRUE(plateaus(curve([](double t) { return std::exp(-t / 2000.0); }), every).empty());
  EXPECT_TRUE(plateaus(curve([](double t) { return 1.0 - t / 10100.0; }), every).empty());
  EXPECT_TRUE(plateaus(curve([](double t) { return 1.0 / (1.0 + t / 300.0); }), every).empty());
  EXPECT_TRUE(plateaus({}, every).empty());
}

TEST(Plateaus, EveryStepOfAStaircaseButTheLastIsOne) {
  const auto found =
      plateaus(curve([](double t) { return t < 3000.0   ? 1.0
                                           : t < 6000.0 ? 0.6
                                                        : 0.3; }), every);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NEAR(static_cast<double>(found[0].last), 3000.0, 150.0);
  EXPECT_NEAR(found[0].loss, 1.0, 0.1);
  EXPECT_NEAR(found[1].loss, 0.6, 0.06);
  EXPECT_NEAR(static_cast<double>(found[1].last), 6000.0, 150.0);
}

TEST(Plateaus, SpikesAndSmallStepsDoNotCount) {
  std::vector<double> loss = curve([](double t) { return t < 5000.0 ? 1.0 : 0.8; });
  EXPECT_TRUE(plateaus(loss, every).empty());
  for (std::size_t i = 50; i < records; i += 40) loss[i] = i % 80 == 50 ? 10.0 : 0.1;
  EXPECT_TRUE(plateaus(loss, every).empty());
}

}  // namespace
}  // namespace normscope::lab::ln_nets
