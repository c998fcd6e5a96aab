#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/parallel.hpp>

namespace normscope {
namespace {

TEST(ParallelFor, VisitsEachIndexOnce) {
  for (const std::size_t count : {0, 1, 7, 1000}) {
    for (const unsigned threads : {1U, 2U, 7U}) {
      std::vector<std::atomic<int>> visits(count);
      parallel_for(count, 3, threads, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) ++visits[i];
      });
      for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit, 1);
    }
  }
}

TEST(ParallelFor, ThrowsAgainWhatAPieceThrew) {
  EXPECT_THROW(parallel_for(100, 1, 4,
                            [](std::size_t begin, std::size_t) {
                              if (begin >= 50) throw std::runtime_error("piece");
                            }),
               std::runtime_error);
}

}  // namespace
}  // namespace normscope
