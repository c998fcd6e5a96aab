#include "run.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

#include "experiment.hpp"
#include "plan.hpp"
#include "support/scratch.hpp"
#include "work.hpp"

namespace normscope::lab {
namespace {

constexpr std::uint64_t steps = 60;

/// A random walk whose position is measured after every step; slow enough to be killed in between.
void walk(Run& run) {
  struct State {
    std::uint64_t random = 0;
    double place = 0.0;
  } state;
  if (run.step() == 0) {
    state.random = run.seed();
    run.keep("begin.txt", "here");
  } else {
    ASSERT_EQ(run.progress().size(), sizeof state);
    std::memcpy(&state, run.progress().data(), sizeof state);
  }
  for (std::uint64_t step = run.step() + 1; step <= steps; ++step) {
    state.random = Random(state.random).bits();
    state.place += run.get<double>("stride") * (state.random % 2 == 0 ? 1.0 : -1.0);
    run.measure("place", step, state.place);
    if (run.get<std::uint64_t>("pause") > 0) usleep(static_cast<useconds_t>(run.get<std::uint64_t>("pause")));
    run.reached(step, steps, [&] {
      Bytes bytes(sizeof state);
      std::memcpy(bytes.data(), &state, sizeof state);
      return bytes;
    });
  }
}

const Experiment walking{
    .name = "test-walk",
    .paper = "nobody",
    .claim = "it goes on",
    .plan =
        [](Size size) {
          const int pause = size == Size::quick ? 0 : 3000;
          return Plan{{Json{{"stride", 1.0}, {"pause", pause}}, Json{{"stride", 2.0}, {"pause", pause}}}, 3};
        },
    .perform = walk,
    .claims =
        {{"far",
          "it goes far",
          "-",
          {"0 or more steps"},
          [](const Results& results) {
            return Finding{std::to_string(results.runs().size()), one_case(results.last("place").count > 0)};
          }}},
};

std::vector<Metric> alone(std::uint64_t seed, double stride) {
  Run run(Json{{"stride", stride}, {"pause", 0}}, seed);
  walk(run);
  return run.measured();
}

TEST(Runs, GoesOnWhereItWasStopped) {
  Random random(3);
  for (int trial = 0; trial < 20; ++trial) {
    std::uint64_t calls = 0;
    const std::uint64_t stop = 1 + random.below(steps);
    lab::Run run(Json{{"stride", 1.0}, {"pause", 0}}, 7,
                 Progress([&](std::string_view, std::size_t, std::size_t) { return ++calls != stop; }));
    EXPECT_THROW(walk(run), Error);
    EXPECT_EQ(run.step(), stop);
    walk(run);
    EXPECT_EQ(run.measured(), alone(7, 1.0));
  }
}

TEST(Runs, AnExperimentGoesOnToTheSameNumbers) {
  const Experiment* experiment = find_experiment("brody-majority");
  ASSERT_NE(experiment, nullptr);
  Json configuration = experiment->plan(Size::quick).configurations.front();
  configuration["sequences"] = 400;
  configuration["batch"] = 100;
  configuration["steps"] = 12;
  configuration["measure_every"] = 4;
  lab::Run whole(configuration, 1);
  experiment->perform(whole);
  bool stopped = false;
  lab::Run parts(configuration, 1, Progress([&](std::string_view, std::size_t done, std::size_t) {
                   const bool stops = done == 7 && !stopped;
                   stopped = stopped || stops;
                   return !stops;
                 }));
  EXPECT_THROW(experiment->perform(parts), Error);
  EXPECT_EQ(parts.step(), 7U);
  experiment->perform(parts);
  EXPECT_EQ(parts.measured(), whole.measured());
  EXPECT_GT(whole.measured().size(), 20U);
}

class Working : public testing::Test {
 protected:
  Work prepared(Size size) {
    Work work{.experiment = &walking, .store = folder_ / "runs.sqlite", .lease_seconds = 0.5};
    work.runs = Store(work.store).add(planned(walking, size, 0, std::nullopt));
    return work;
  }
  /// Every run is there, whole, and as one process alone makes it.
  void expect_whole(const Work& work) const {
    const Store store(work.store);
    EXPECT_EQ(store.open(work.runs), 0U);
    for (const RunInfo& info : store.runs()) {
      const double stride = info.key.configuration.at("stride").get<double>();
      EXPECT_EQ(store.metrics(info.id), alone(info.key.seed, stride));
      EXPECT_EQ(store.artefacts(info.id), std::vector<std::string>{"begin.txt"});
    }
  }

  test::Scratch folder_;
};

TEST_F(Working, DoesEveryRunOnce) {
  const Work the_work = prepared(Size::quick);
  work(the_work, {});
  work(the_work, {});
  expect_whole(the_work);
  for (const RunInfo& run : Store(the_work.store).runs()) EXPECT_EQ(run.attempts, 1U);
}

TEST_F(Working, SeveralProcessesShareTheRuns) {
  const Work the_work = prepared(Size::quick);
  work_in_processes(the_work, 3, {});
  expect_whole(the_work);
}

TEST_F(Working, StopsWithEverythingSavedAndGoesOn) {
  const Work the_work = prepared(Size::full);
  std::size_t calls = 0;
  const Progress stopping([&](std::string_view, std::size_t, std::size_t) { return ++calls < 100; });
  EXPECT_THROW(work(the_work, stopping), Error);
  // The second run is saved at the step where it was stopped, and has no lease.
  EXPECT_EQ(Store(the_work.store).runs()[1].state, RunState::waiting);
  EXPECT_EQ(Store(the_work.store).runs()[1].step, 100 - steps);
  work(the_work, {});
  expect_whole(the_work);
}

TEST_F(Working, AKilledProcessIsTakenOver) {
  const Work the_work = prepared(Size::full);
  Random random(11);
  for (int kills = 0; kills < 3; ++kills) {
    const pid_t child = fork();
    if (child == 0) {
      work(the_work, {});
      _exit(0);
    }
    usleep(static_cast<useconds_t>(20'000 + random.below(200'000)));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  work_in_processes(the_work, 2, {});
  expect_whole(the_work);
}

TEST_F(Working, GivesARunBackThatFailed) {
  Experiment failing = walking;
  failing.perform = [](lab::Run&) { throw Error(ErrorCode::Io, "no data"); };
  Work the_work = prepared(Size::quick);
  the_work.experiment = &failing;
  EXPECT_THROW(work(the_work, {}), Error);
  EXPECT_EQ(Store(the_work.store).runs()[0].state, RunState::waiting);
}

TEST_F(Working, ALongStepKeepsItsLease) {
  // Static: what an experiment performs is a function without captures.
  static Work the_work;
  static std::optional<Lease> taken;
  the_work = prepared(Size::quick);
  the_work.runs.resize(1);
  the_work.lease_seconds = 1.5;
  Experiment slow = walking;
  slow.perform = [](lab::Run& run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    taken = Store(the_work.store).lease(the_work.runs, 1);
    run.measure("place", 1, 0.0);
  };
  the_work.experiment = &slow;
  work(the_work, {});
  EXPECT_FALSE(taken.has_value());
}

}  // namespace
}  // namespace normscope::lab
