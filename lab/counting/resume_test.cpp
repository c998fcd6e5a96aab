#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

#include "frame/experiment.hpp"

// The experiments that count: a run that is stopped and goes on measures what an uninterrupted one does.
namespace normscope::lab::counting {
namespace {

void expect_the_same_after_a_stop(std::string_view name) {
  const Experiment* const experiment = find_experiment(name);
  ASSERT_NE(experiment, nullptr);
  Random random(2);
  const Plan plan = experiment->plan(Size::quick);
  for (std::size_t at = 0; at < plan.configurations.size(); at += 5) {
    std::size_t calls = 0;
    Run whole(plan.configurations[at], 3,
              Progress([&](std::string_view, std::size_t, std::size_t) { return ++calls > 0; }));
    experiment->perform(whole);
    ASSERT_FALSE(whole.measured().empty());
    ASSERT_GT(calls, 0U);
    const std::size_t stop = 1 + random.below(calls);
    std::size_t seen = 0;
    Run halted(plan.configurations[at], 3,
               Progress([&](std::string_view, std::size_t, std::size_t) { return ++seen != stop; }));
    EXPECT_THROW(experiment->perform(halted), Error);
    experiment->perform(halted);
    EXPECT_EQ(halted.measured(), whole.measured()) << plan.configurations[at].dump() << " at " << stop;
  }
}

TEST(Resume, MerrillGeneralization) { expect_the_same_after_a_stop("merrill-generalization"); }
TEST(Resume, MerrillTheorems) { expect_the_same_after_a_stop("merrill-theorems"); }
TEST(Resume, WeissCounters) { expect_the_same_after_a_stop("weiss-counters"); }
TEST(Resume, WeissCounting) { expect_the_same_after_a_stop("weiss-counting"); }

}  // namespace
}  // namespace normscope::lab::counting
