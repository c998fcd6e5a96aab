#include <normscope/core/per_thread.hpp>

#include <atomic>
#include <new>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace normscope {
namespace {

std::atomic<int> living = 0;

struct Counted {
  Counted() { ++living; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --living; }

  int calls = 0;
};

TEST(PerThread, HasOneForEachThreadUntilItEnds) {
  static const PerThread<Counted> counted;
  static const PerThread<Counted> others;
  const int before = living;
  for (int call = 0; call < 3; ++call) EXPECT_EQ(counted.of_this_thread().calls++, call);
  EXPECT_EQ(others.of_this_thread().calls, 0);
  EXPECT_EQ(living, before + 2);
  std::vector<const Counted*> seen(4);
  {
    std::vector<std::jthread> threads;
    for (const Counted*& object : seen) {
      threads.emplace_back([&object] {
        for (int call = 0; call < 3; ++call) EXPECT_EQ(counted.of_this_thread().calls++, call);
        object = &counted.of_this_thread();
      });
    }
  }
  EXPECT_EQ(living, before + 2);
  for (const Counted* object : seen) EXPECT_NE(object, &counted.of_this_thread());
  EXPECT_EQ(counted.of_this_thread().calls, 3);
}

struct Throws {
  Throws() { throw std::bad_alloc(); }
};

TEST(PerThread, ThrowsWhatItsObjectThrows) {
  static const PerThread<Throws> never;
  for (int call = 0; call < 2; ++call)
    EXPECT_THROW(static_cast<void>(never.of_this_thread()), std::bad_alloc);
}

}  // namespace
}  // namespace normscope
