#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>

#include "support/thread_team.hpp"

namespace normscope {
namespace {

/// Waits for `ready`; false after a time in which even a busy machine starts a thread.
template <typename Ready>
bool wait_for(const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!ready()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Runs `in_worker` once on a thread other than the caller's; false if there is none.
template <typename Action>
bool run_in_worker(const Action& in_worker) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> done = false;
  std::atomic<bool> there = true;
  parallel_for(2, 1, 2, [&](std::size_t, std::size_t) {
    if (std::this_thread::get_id() == caller) {
      there = wait_for([&] { return done.load(); });
    } else if (!done) {
      in_worker();
      done = true;
    }
  });
  return there;
}

std::size_t nested_sum(unsigned depth, unsigned threads) {
  if (depth == 0) return 1;
  std::array<std::atomic<std::size_t>, 5> sums{};
  parallel_for(sums.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (; begin < end; ++begin) sums[begin] += nested_sum(depth - 1, threads);
  });
  return std::accumulate(sums.begin(), sums.end(), std::size_t{0});
}

TEST(ParallelFor, VisitsEachIndexOnce) {
  for (const std::size_t count : {0, 1, 7, 1000}) {
    for (const unsigned threads : {0U, 1U, 2U, 7U, 40U, 100U}) {
      std::vector<std::atomic<int>> visits(count);
      parallel_for(count, 3, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) ++visits[i];
      });
      for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit, 1);
    }
  }
}

TEST(ParallelFor, PiecesAreEvenAndHoldHalfAGrain) {
  for (const std::size_t count : {1, 4, 44, 64, 999, 1000}) {
    for (const std::size_t grain : {0, 1, 3, 43, 500, 1001}) {
      for (const unsigned threads : {1U, 2U, 3U, 16U}) {
        std::mutex mutex;
        std::set<std::size_t> sizes;
        std::size_t pieces = 0;
        parallel_for(count, grain, threads, [&](std::size_t begin, std::size_t end) {
          const std::lock_guard lock(mutex);
          sizes.insert(end - begin);
          ++pieces;
        });
        EXPECT_TRUE(2 * *sizes.begin() >= grain || count < grain);
        EXPECT_LE(*sizes.rbegin(), *sizes.begin() + 1);
        const std::size_t grains = grain == 0 ? count : (count - 1) / grain + 1;
        EXPECT_EQ(pieces % std::min<std::size_t>(threads, grains), 0U);
        EXPECT_LE(pieces, grains);
      }
    }
  }
}

TEST(ParallelFor, CallsAnyCallableByReference) {
  struct Counted {
    std::size_t seen = 0;
    void operator()(std::size_t begin, std::size_t end) { seen += end - begin; }
  };
  Counted counted;
  parallel_for(10, 10, 1, counted);
  EXPECT_EQ(counted.seen, 10U);
  parallel_for(10, 10, 1, std::ref(counted));
  EXPECT_EQ(counted.seen, 20U);
  const std::function<void(std::size_t, std::size_t)> function = counted;
  EXPECT_NO_THROW(parallel_for(10, 10, 1, function));
}

TEST(ParallelFor, WorkersAreNoMoreThanAskedFor) {
  EXPECT_TRUE(run_in_worker([] {}));
  // Eight workers exist from now on.
  parallel_for(64, 1, 9, [](std::size_t, std::size_t) {});
  std::set<std::thread::id> seen;
  std::mutex mutex;
  std::atomic<int> inside = 0;
  parallel_for(300, 1, 3, [&](std::size_t, std::size_t) {
    EXPECT_LE(++inside, 3);
    {
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    }
    std::this_thread::yield();
    --inside;
  });
  EXPECT_LE(seen.size(), 3U);
}

TEST(ParallelFor, AStuckWorkersRangeIsTakenByOthers) {
  const std::thread::id caller = std::this_thread::get_id();
  for (const bool stuck_is_caller : {false, true}) {
    std::atomic<std::size_t> done = 0;
    std::atomic<bool> stuck = false;
    parallel_for(64, 1, 2, [&](std::size_t begin, std::size_t end) {
      if ((std::this_thread::get_id() == caller) == stuck_is_caller) {
        EXPECT_FALSE(stuck.exchange(true));
        EXPECT_TRUE(wait_for([&] { return done == 64 - (end - begin); }));
      } else {
        EXPECT_TRUE(wait_for([&] { return stuck.load(); }));
      }
      done += end - begin;
    });
    EXPECT_EQ(done, 64U);
  }
}

TEST(ParallelFor, ThreadsAreBounded) {
  EXPECT_EQ(thread_count(7), 7U);
  EXPECT_GE(thread_count(0), 1U);
  EXPECT_EQ(thread_count(std::numeric_limits<unsigned>::max()), 1024U);
}

TEST(ParallelFor, NestedCallsEnd) {
  for (const unsigned threads : {0U, 2U, 5U}) EXPECT_EQ(nested_sum(5, threads), 3125U);
}

TEST(ParallelFor, CallersDoNotDisturbEachOther) {
  std::array<std::atomic<std::size_t>, 6> sums{};
  std::vector<std::thread> callers;
  for (std::size_t c = 0; c < sums.size(); ++c) {
    callers.emplace_back([c, &sum = sums[c]] {
      for (std::size_t call = 0; call < 300; ++call) {
        parallel_for(17, 1, static_cast<unsigned>(c + 1), [&](std::size_t begin, std::size_t end) {
          for (; begin < end; ++begin) sum += begin + c;
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (std::size_t c = 0; c < sums.size(); ++c) EXPECT_EQ(sums[c], 300 * (17 * 16 / 2 + 17 * c));
}

TEST(ParallelFor, ManyTinyCalls) {
  std::vector<int> visits(8);
  for (int call = 0; call < 20'000; ++call) {
    parallel_for(visits.size(), 1, 3, [&](std::size_t begin, std::size_t end) {
      for (; begin < end; ++begin) ++visits[begin];
    });
    // Workers fall asleep now and then.
    if (call % 5'000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(visits, std::vector<int>(8, 20'000));
}

TEST(ParallelFor, ThrowsAgainWhatAPieceThrew) {
  for (int call = 0; call < 200; ++call) {
    std::atomic<int> inside = 0;
    EXPECT_THROW(parallel_for(100, 1, 4,
                              [&](std::size_t begin, std::size_t) {
                                ++inside;
                                if (begin < 50) std::this_thread::yield();
                                --inside;
                                if (begin >= 50) throw std::runtime_error("piece");
                              }),
                 std::runtime_error);
    EXPECT_EQ(inside, 0);
  }
  EXPECT_TRUE(run_in_worker([] {}));
}

TEST(ParallelFor, ThrowsAgainWhatTheFirstOfSeveralPiecesThrew) {
  for (std::size_t first = 0; first < 60; ++first) {
    try {
      parallel_for(64, 1, 4, [&](std::size_t begin, std::size_t end) {
        // The first exception in order is the last in time.
        if (begin <= first && first < end) std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (first < end) throw std::max(begin, first);
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (std::size_t index) {
      EXPECT_EQ(index, first);
    }
  }
}

TEST(ParallelFor, ThrowsAgainWhatAWorkerThrew) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<bool> thrown = false;
  EXPECT_THROW(parallel_for(2, 1, 2,
                            [&](std::size_t, std::size_t) {
                              if (std::this_thread::get_id() == caller) {
                                EXPECT_TRUE(wait_for([&] { return thrown.load(); }));
                              } else {
                                thrown = true;
                                throw std::length_error("worker");
                              }
                            }),
               std::length_error);
}

TEST(ParallelFor, WhatALaterPieceThrowsAfterwardsIsLeftOut) {
  std::atomic<bool> second_begun = false;
  std::atomic<bool> first_throws = false;
  try {
    parallel_for(2, 1, 2, [&](std::size_t begin, std::size_t) {
      if (begin == 0) {
        EXPECT_TRUE(wait_for([&] { return second_begun.load(); }));
        first_throws = true;
      } else {
        second_begun = true;
        EXPECT_TRUE(wait_for([&] { return first_throws.load(); }));
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      throw begin;
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (std::size_t begin) {
    EXPECT_EQ(begin, 0U);
  }
}

TEST(ParallelFor, AHundredThreadsWorkAtOnce) {
  std::array<std::atomic<int>, 100> visits{};
  std::atomic<unsigned> there = 0;
  parallel_for(visits.size(), 1, 100, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) ++visits[i];
    ++there;
    EXPECT_TRUE(wait_for([&] { return there == 100; }));
  });
  for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit, 1);
}

TEST(ParallelFor, WorkersBlockSignals) {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  ASSERT_TRUE(run_in_worker([] {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
      EXPECT_EQ(sigismember(&blocked, signal), 1);
    }
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE}) {
      EXPECT_EQ(sigismember(&blocked, fault), 0);
    }
  }));
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
}

/// The exit status of a child that returns what `body` does.
template <typename Body>
int status_of_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The first index that each of `threads` concurrent threads processes.
std::map<std::thread::id, std::size_t> first_indices(std::size_t count, unsigned threads) {
  std::map<std::thread::id, std::size_t> first;
  std::mutex mutex;
  std::atomic<unsigned> there = 0;
  parallel_for(count, 1, threads, [&](std::size_t begin, std::size_t) {
    {
      const std::lock_guard lock(mutex);
      if (!first.emplace(std::this_thread::get_id(), begin).second) return;
    }
    ++there;
    wait_for([&] { return there == threads; });
  });
  return first;
}

/// Runs in a process of its own, so that its workers are new and no more than are asked for.
class NewWorkersDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(NewWorkersDeathTest, EachThreadBeginsWithTheRangeItHadBefore) {
  const auto in_child = [] {
    const auto before = first_indices(64, 4);
    std::set<std::size_t> begins;
    for (const auto& [thread, begin] : before) begins.insert(begin);
    if (begins != std::set<std::size_t>{0, 16, 32, 48}) return 1;
    if (before.at(std::this_thread::get_id()) != 0) return 2;
    for (int call = 0; call < 20; ++call) {
      if (first_indices(64, 4) != before) return 3;
      std::this_thread::sleep_for(std::chrono::microseconds(call * 20));
    }
    // After these calls, two threads may prefer the same range.
    for (int call = 0; call < 20; ++call) first_indices(64, 2);
    return first_indices(64, 4).size() == 4 ? 7 : 4;
  };
  EXPECT_EXIT(std::exit(in_child()), testing::ExitedWithCode(7), "");
}

TEST_F(NewWorkersDeathTest, CallsEndInAnyOrder) {
  const auto in_child = [] {
    // While the only worker is busy elsewhere, two calls are open, of which the older ends first.
    std::atomic<bool> worker_busy = false;
    std::atomic<bool> first_open = false;
    std::atomic<bool> second_open = false;
    std::atomic<bool> first_done = false;
    std::atomic<bool> both_done = false;
    std::atomic<bool> in_time = true;
    std::atomic<std::size_t> visits = 0;
    const auto await = [&](const std::atomic<bool>& flag) {
      if (!wait_for([&] { return flag.load(); })) in_time = false;
    };
    std::thread busy([&] {
      const std::thread::id caller = std::this_thread::get_id();
      parallel_for(2, 1, 2, [&](std::size_t, std::size_t) {
        if (std::this_thread::get_id() == caller) return await(worker_busy);
        worker_busy = true;
        await(both_done);
      });
    });
    await(worker_busy);
    std::thread first([&] {
      parallel_for(2, 1, 2, [&](std::size_t begin, std::size_t end) {
        first_open = true;
        await(second_open);
        visits += end - begin;
      });
      first_done = true;
    });
    await(first_open);
    parallel_for(2, 1, 2, [&](std::size_t begin, std::size_t end) {
      second_open = true;
      await(first_done);
      visits += end - begin;
    });
    both_done = true;
    first.join();
    busy.join();
    return in_time && visits == 4 && run_in_worker([] {}) ? 7 : 1;
  };
  EXPECT_EXIT(std::exit(in_child()), testing::ExitedWithCode(7), "");
}

#if defined(__GLIBC__)
TEST_F(NewWorkersDeathTest, TheCallerDoesAllWhereNoThreadStarts) {
  const auto in_child = [] {
    pthread_attr_t usual;
    if (pthread_getattr_default_np(&usual) != 0) return 1;
    pthread_attr_t huge = usual;
    // More than the address space has.
    pthread_attr_setstacksize(&huge, std::size_t{1} << 50U);
    if (pthread_setattr_default_np(&huge) != 0) return 2;
    const std::thread::id caller = std::this_thread::get_id();
    std::size_t visits = 0;
    parallel_for(64, 1, 4, [&](std::size_t begin, std::size_t end) {
      if (std::this_thread::get_id() == caller) visits += end - begin;
    });
    if (visits != 64 || nested_sum(3, 3) != 125) return 3;
    if (pthread_setattr_default_np(&usual) != 0) return 4;
    return run_in_worker([] {}) ? 7 : 5;
  };
  EXPECT_EXIT(std::exit(in_child()), testing::ExitedWithCode(7), "");
}
#endif

#if defined(__linux__)
cpu_set_t cores_of_this_thread() {
  cpu_set_t cores;
  EXPECT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
  return cores;
}

void stay_on(int core) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
}

TEST_F(NewWorkersDeathTest, OneCpuIsEnough) {
  const cpu_set_t all = cores_of_this_thread();
  int core = 0;
  while (!CPU_ISSET(core, &all)) ++core;
  stay_on(core);
  EXPECT_EXIT(std::exit(nested_sum(3, 3) == 125 && run_in_worker([] {}) ? 7 : 1), testing::ExitedWithCode(7),
              "");
  EXPECT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
}
#endif

TEST(ParallelFor, WorksInTheChildOfAFork) {
  ASSERT_TRUE(run_in_worker([] {}));
  const auto in_child = [] { return run_in_worker([] {}) && nested_sum(3, 3) == 125 ? 7 : 1; };
  EXPECT_EQ(status_of_child(in_child), 7);
  // In a child that is forked while workers are busy, and in a child of that child.
  int from_inside = 0;
  ASSERT_TRUE(
      run_in_worker([&] { from_inside = status_of_child([&] { return status_of_child(in_child); }); }));
  EXPECT_EQ(from_inside, 7);
  EXPECT_TRUE(run_in_worker([] {}));
}

TEST(ParallelForDeathTest, TheProcessEndsWhileWorkersSleepOrWork) {
  EXPECT_EXIT(
      {
        run_in_worker([] {});
        std::exit(3);
      },
      testing::ExitedWithCode(3), "");
  EXPECT_EXIT(run_in_worker([] { std::exit(4); }), testing::ExitedWithCode(4), "");
  EXPECT_EXIT(run_in_worker([] { std::quick_exit(5); }), testing::ExitedWithCode(5), "");
}

TEST(ParallelForDeathTest, StaticDestructorsMayCall) {
  struct Late {
    ~Late() {
      if (nested_sum(3, 3) == 125 && run_in_worker([] {})) _exit(6);
    }
  };
  EXPECT_EXIT(
      {
        static const Late late;
        std::exit(1);
      },
      testing::ExitedWithCode(6), "");
}

TEST(Team, EveryItemIsOneMembers) {
  ThreadTeam::run(3, [](const Team& team) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{2}, std::size_t{7}}) {
      EXPECT_EQ(team.first_of(0, count), 0U);
      EXPECT_EQ(team.first_of(3, count), count);
      EXPECT_LE(team.first_of(1, count), team.first_of(2, count));
    }
  });
}

TEST(Team, AllMembersGetWhatEachHas) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{4}}) {
    ThreadTeam::run(size, [size](const Team& team) {
      // As many bytes as its rank, so that the first has none.
      const std::vector<std::byte> own(team.rank(), std::byte(team.rank()));
      const std::vector<std::vector<std::byte>> all = gathered(own, team);
      ASSERT_EQ(all.size(), size);
      for (std::size_t member = 0; member < size; ++member) {
        EXPECT_EQ(all[member], std::vector<std::byte>(member, std::byte(member)));
      }
    });
  }
  EXPECT_EQ(gathered({std::byte{7}}, alone()), (std::vector<std::vector<std::byte>>{{std::byte{7}}}));
}

TEST(Team, OneThatIsCancelledStopsAll) {
  std::atomic<int> stopped = 0;
  std::atomic<int> worked = 0;
  ThreadTeam::run(3, [&](const Team& team) {
    together(team, [&] { ++worked; });
    try {
      together(team, [&] {
        if (team.rank() == 1) throw Error(ErrorCode::Cancelled, "cancelled");
        ++worked;
      });
    } catch (const Error& error) {
      if (error.code() == ErrorCode::Cancelled) ++stopped;
    }
  });
  EXPECT_EQ(stopped, 3);
  EXPECT_EQ(worked, 5);
}

TEST(Team, AnotherErrorIsTheMembersOwn) {
  try {
    together(alone(), [] { throw Error(ErrorCode::Argument, "wrong"); });
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Argument);
    EXPECT_STREQ(error.what(), "wrong");
  }
}

}  // namespace

}  // namespace normscope
