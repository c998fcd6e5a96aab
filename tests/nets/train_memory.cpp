// A separate program, because it replaces the global operator new to count allocations of the training.
#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include <normscope/nets/tasks.hpp>
#include <normscope/nets/train.hpp>

namespace {

std::atomic<std::size_t> allocations{0};

}  // namespace

// Not inlined: inlining only one of new and delete makes the compiler warn of a mismatch.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace normscope::nets {
namespace {

TEST(TrainMemory, StepsAllocateNothing) {
  for (const std::size_t batch : {std::size_t{0}, std::size_t{64}}) {
    for (const bool affine : {false, true}) {
      Trainer trainer({.width = 8,
                       .depth = 2,
                       .norm = NormKind::layer,
                       .groups = 2,
                       .affine = affine,
                       .steps = 100,
                       .batch = batch,
                       .record_every = 1},
                      spiral(300, 1), 1);
      // The first step makes the order of the batches.
      trainer.step();
      const std::size_t before = allocations;
      while (!trainer.done()) trainer.step();
      EXPECT_EQ(allocations, before) << "batch " << batch;
    }
  }
}

}  // namespace
}  // namespace normscope::nets
