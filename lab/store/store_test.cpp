#include "store.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/random.hpp>

#include "database.hpp"
#include "support/scratch.hpp"

namespace normscope::lab {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::uint64_t value) {
  Bytes bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

class RunStore : public testing::Test {
 protected:
  std::filesystem::path file() const { return folder_ / "runs.sqlite"; }
  static std::vector<RunKey> seeds(std::uint64_t count) {
    std::vector<RunKey> keys;
    for (std::uint64_t seed = 1; seed <= count; ++seed)
      keys.push_back({"majority", {{"norm", "layer"}}, seed});
    return keys;
  }

  test::Scratch folder_;
};

TEST_F(RunStore, KeepsWhatARunReached) {
  Store store(file());
  const std::vector<std::int64_t> ids = store.add(seeds(2));
  Lease lease = store.lease(ids, 60).value();
  EXPECT_EQ(lease.key.seed, 1U);
  EXPECT_TRUE(lease.progress.empty());
  const std::vector<Metric> first{{"accuracy", 0, 0.5}, {"loss", 0, 0.7}, {"loss", 5, std::nan("")}};
  store.save(lease, 5, first, bytes_of(17), 60);
  store.keep(lease, "figure", bytes_of(3));
  store.release(lease);

  Store again(file());
  lease = again.lease(ids, 60).value();
  EXPECT_EQ(lease.key.seed, 1U);
  EXPECT_EQ(lease.step, 5U);
  EXPECT_EQ(lease.progress, bytes_of(17));
  again.finish(lease, 10, std::vector<Metric>{{"loss", 10, 0.1}});

  const std::vector<Metric> all = again.metrics(lease.run);
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[1], (Metric{"loss", 0, 0.7}));
  EXPECT_TRUE(std::isnan(all[2].value));
  EXPECT_EQ(all[3], (Metric{"loss", 10, 0.1}));
  EXPECT_EQ(again.artefact(lease.run, "figure"), bytes_of(3));
  EXPECT_EQ(again.runs()[0].state, RunState::done);
  EXPECT_EQ(again.runs()[0].attempts, 2U);
  EXPECT_EQ(again.lease(ids, 60)->key.seed, 2U);
  EXPECT_FALSE(again.lease(ids, 60).has_value());
}

TEST_F(RunStore, AddsEachRunOnce) {
  Store store(file());
  const std::vector<std::int64_t> three = store.add(seeds(3));
  const std::vector<std::int64_t> five = store.add(seeds(5));
  EXPECT_TRUE(std::equal(three.begin(), three.end(), five.begin()));
  EXPECT_EQ(store.runs("majority").size(), 5U);
  EXPECT_TRUE(store.runs("another").empty());
}

TEST_F(RunStore, ALeaseThatRanOutIsTakenOver) {
  Store store(file());
  const std::vector<std::int64_t> ids = store.add(seeds(1));
  Lease dead = store.lease(ids, 0.4).value();
  EXPECT_FALSE(store.lease(ids, 60).has_value());
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const Lease heir = store.lease(ids, 60).value();
  EXPECT_EQ(heir.run, dead.run);
  // A process that returns after its lease has expired changes nothing.
  const std::vector<Metric> late{{"loss", 1, 1.0}};
  EXPECT_FALSE(store.renew(dead, 60));
  EXPECT_THROW(store.save(dead, 1, late, {}, 60), Error);
  EXPECT_THROW(store.finish(dead, 1, late), Error);
  EXPECT_THROW(store.keep(dead, "x", {}), Error);
  store.release(dead);
  EXPECT_TRUE(store.metrics(dead.run).empty());
  store.finish(heir, 1, late);
}

TEST_F(RunStore, ARenewedLeaseIsKept) {
  Store store(file());
  const std::vector<std::int64_t> ids = store.add(seeds(1));
  const Lease lease = store.lease(ids, 0.2).value();
  EXPECT_TRUE(store.renew(lease, 60));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_FALSE(store.lease(ids, 60).has_value());
}

TEST_F(RunStore, LeasesOnlyWhatIsAskedForInThatOrder) {
  Store store(file());
  const std::vector<std::int64_t> ids = store.add(seeds(3));
  const std::vector<std::int64_t> wanted{ids[2], ids[1]};
  EXPECT_EQ(store.open(wanted), 2U);
  store.finish(store.lease(wanted, 60).value(), 1, std::vector<Metric>{{"loss", 1, 3.0}});
  EXPECT_EQ(store.metrics(ids[2]).size(), 1U);
  EXPECT_EQ(store.lease(wanted, 60)->key.seed, 2U);
  EXPECT_FALSE(store.lease(wanted, 60).has_value());
  EXPECT_EQ(store.open(wanted), 1U);
  EXPECT_EQ(store.open(ids), 2U);
}

TEST_F(RunStore, RefusesWhatIsNoStore) {
  {
    AtomicFile other(file());
    other.write(std::string(4096, 'x'));
    other.commit();
  }
  EXPECT_THROW(Store{file()}, Error);
  EXPECT_THROW(Store{folder_ / "missing" / "runs.sqlite"}, Error);
}

/// A run whose every step measures what all steps before it add up to; it dies where it is told to.
void work(const std::filesystem::path& file, std::uint64_t steps, std::uint64_t save_every) {
  Store store(file);
  std::vector<std::int64_t> ids;
  for (const RunInfo& run : store.runs()) ids.push_back(run.id);
  while (std::optional<Lease> lease = store.lease(ids, 0.2)) {
    std::uint64_t sum = 0;
    if (!lease->progress.empty()) std::memcpy(&sum, lease->progress.data(), sizeof sum);
    std::vector<Metric> metrics;
    for (std::uint64_t step = lease->step + 1; step <= steps; ++step) {
      sum += step * lease->key.seed;
      metrics.push_back({"sum", step, static_cast<double>(sum)});
      if (step % save_every != 0 || step == steps) continue;
      store.save(*lease, step, metrics, bytes_of(sum), 0.2);
      metrics.clear();
    }
    store.finish(*lease, steps, metrics);
  }
}

pid_t start(const std::filesystem::path& file) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    work(file, 400, 7);
  } catch (...) {
    _exit(1);
  }
  _exit(0);
}

TEST_F(RunStore, KilledRunsGoOnWithoutRepeatOrGap) {
  constexpr std::uint64_t runs = 3;
  std::vector<RunKey> keys;
  for (std::uint64_t seed = 1; seed <= runs; ++seed)
    keys.push_back({"sum", nlohmann::ordered_json::object(), seed});
  Store(file()).add(keys);
  Random random(5);
  // Two at once, each killed at random moments, until nothing is left to do.
  for (int kill_count = 0; kill_count < 12; ++kill_count) {
    const pid_t children[] = {start(file()), start(file())};
    usleep(static_cast<useconds_t>(2000 + random.below(60000)));
    for (const pid_t child : children) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  for (;;) {
    work(file(), 400, 7);
    const std::vector<RunInfo> all = Store(file()).runs();
    if (std::all_of(all.begin(), all.end(), [](const RunInfo& run) { return run.state == RunState::done; }))
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const Store store(file());
  std::size_t attempts = 0;
  for (const RunInfo& run : store.runs()) {
    attempts += run.attempts;
    const std::vector<Metric> metrics = store.metrics(run.id);
    ASSERT_EQ(metrics.size(), 400U);
    double sum = 0.0;
    for (std::uint64_t step = 1; step <= 400; ++step) {
      sum += static_cast<double>(step * run.key.seed);
      ASSERT_EQ(metrics[step - 1], (Metric{"sum", step, sum}));
    }
  }
  EXPECT_GT(attempts, runs) << "nobody was killed at work";
}

TEST_F(RunStore, KeepsTheFirstTimeOfARule) {
  Store store(file());
  const StoredRule rule{"majority", "gap", "h1", "{}", 0.0};
  store.write_rules(std::vector{rule});
  const double first = store.rules("majority").at(0).written;
  EXPECT_GT(first, 1.6e9);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  store.write_rules(std::vector{rule, StoredRule{"majority", "gap", "h2", "{}", 0.0}});
  ASSERT_EQ(store.rules("majority").size(), 2U);
  EXPECT_EQ(store.rules("majority")[0].written, first);
  EXPECT_GT(store.rules("majority")[1].written, first);
  EXPECT_TRUE(store.rules("other").empty());
  // A run begins when it is first leased, and not again when it is resumed.
  const std::vector<std::int64_t> ids = store.add(seeds(1));
  EXPECT_EQ(store.runs()[0].started, 0.0);
  store.release(store.lease(ids, 60).value());
  const double started = store.runs()[0].started;
  EXPECT_GT(started, first);
  store.release(store.lease(ids, 60).value());
  EXPECT_EQ(store.runs()[0].started, started);
}

TEST_F(RunStore, AddsUpWhatTheAttemptsSpent) {
  Store store(file());
  const std::vector<std::int64_t> ids = store.add(seeds(1));
  Lease lease = store.lease(ids, 60).value();
  lease.spent = {.seconds = 2.5, .peak = 900};
  store.save(lease, 1, {}, {}, 60);
  EXPECT_EQ(lease.spent.seconds, 0.0);
  store.release(lease);
  lease = store.lease(ids, 60).value();
  lease.spent = {.seconds = 0.5, .peak = 400};
  store.finish(lease, 2, {});
  const RunInfo run = Store(file()).runs()[0];
  EXPECT_EQ(run.seconds, 3.0);
  EXPECT_EQ(run.peak, 900U);
  EXPECT_EQ(run.machine, this_machine());
  EXPECT_EQ(run.revision, source_revision());
}

TEST_F(RunStore, ReadsStoresWithoutTimes) {
  {
    Store store(file());
    const std::vector<std::int64_t> ids = store.add(seeds(2));
    store.finish(store.lease(ids, 60).value(), 1, std::vector<Metric>{{"loss", 1, 0.5}});
  }
  {
    Database database(file());
    for (const char* column : {"started", "seconds", "peak", "machine", "revision"})
      database.execute(fmt::format("ALTER TABLE runs DROP COLUMN {}", column).c_str());
    database.execute("DROP TABLE rules; PRAGMA user_version=1");
  }
  Store store(file());
  EXPECT_EQ(store.runs()[0].started, 0.0);
  EXPECT_EQ(store.runs()[0].machine, "");
  EXPECT_EQ(store.metrics(store.runs()[0].id).size(), 1U);
  store.write_rules(std::vector{StoredRule{"majority", "gap", "h", "{}", 0.0}});
  EXPECT_EQ(Store(file()).rules("majority").size(), 1U);
}

}  // namespace
}  // namespace normscope::lab
