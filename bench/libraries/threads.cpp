// parallel_for against oneTBB: calls as short as the norm of a few rows, and calls of milliseconds.

#include <memory>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <normscope/core/parallel.hpp>
#include <normscope/core/random.hpp>

#include "pairs.hpp"

namespace normscope::bench {
namespace {

constexpr std::size_t width = 1024;

/// Sums of squares of the rows [begin, end).
void sum_rows(const float* x, double* sums, std::size_t begin, std::size_t end) {
  for (std::size_t row = begin; row < end; ++row) {
    float lanes[16] = {};
    for (std::size_t i = 0; i < width; i += 16) {
      for (std::size_t l = 0; l < 16; ++l) lanes[l] += x[row * width + i + l] * x[row * width + i + l];
    }
    sums[row] = 0.0;
    for (const float lane : lanes) sums[row] += static_cast<double>(lane);
  }
}

}  // namespace

void thread_rows(bool quick, const Show& show) {
  const unsigned threads = thread_count(0);
  for (const std::size_t rows :
       {std::size_t{32}, std::size_t{512}, quick ? std::size_t{2048} : std::size_t{16384}}) {
    const auto x = std::make_shared<std::vector<float>>(rows * width);
    Random random(rows);
    for (float& value : *x) value = static_cast<float>(random.uniform());
    const std::size_t calls = std::max<std::size_t>(1, 32768 / rows);
    const auto sums = std::make_shared<std::vector<double>>(rows);
    const auto own = [=] {
      for (std::size_t call = 0; call < calls; ++call) {
        parallel_for(rows, 8, threads, [&](std::size_t begin, std::size_t end) {
          sum_rows(x->data(), sums->data(), begin, end);
        });
      }
    };
    const auto their_sums = std::make_shared<std::vector<double>>(rows);
    const auto arena = std::make_shared<tbb::task_arena>(static_cast<int>(threads));
    const auto theirs = [=] {
      for (std::size_t call = 0; call < calls; ++call) {
        arena->execute([&] {
          tbb::parallel_for(tbb::blocked_range<std::size_t>(0, rows, 8),
                            [&](const tbb::blocked_range<std::size_t>& piece) {
                              sum_rows(x->data(), their_sums->data(), piece.begin(), piece.end());
                            });
        });
      }
    };
    const Shape shape{.text = std::to_string(rows) + " rows", .dtype = "float32", .threads = threads};
    show(compare("threads", shape, {"normscope", own, [=] { return *sums; }, calls},
                 {{"oneTBB", theirs, [=] { return *their_sums; }, calls}}, 11, 0.0));
  }
}

}  // namespace normscope::bench
