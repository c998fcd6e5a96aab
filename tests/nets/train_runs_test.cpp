#include <normscope/nets/train_runs.hpp>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "support/scratch.hpp"

namespace normscope::nets {
namespace {

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
