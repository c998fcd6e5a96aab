#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <normscope/core/parallel.hpp>

#include "products.hpp"

namespace normscope::selectability {

/// Scores all `points` against all rows in float32 and passes each block of scores to the state of its point
/// in `seen`.
///
/// `Rows` has `size()`, `width()` and `values(row)`; `block_at(first, count)` describes a block of rows to
/// the states. A state has `meet(float* scores, const Block&)` for the scores of one block, which it may
/// overwrite, and `merge(State&&)` for those of other rows; neither may depend on how the rows are split, so
/// that threads change no result.
template <typename Rows, typename State>
void scan(std::span<const float> points, const Rows& rows, unsigned threads, std::vector<State>& seen) {
  constexpr std::size_t together = 128;  // points of a product
  constexpr std::size_t fewest = 2048;   // rows of a task
  const std::size_t count = seen.size();
  const std::size_t width = rows.width();
  const std::size_t batches = (count + together - 1) / together;
  const std::size_t workers = thread_count(threads);
  // Rows are split only if there are fewer batches of points than threads.
  const std::size_t parts = batches == 0 || batches >= workers
                                ? 1
                                : std::min((rows.size() + fewest - 1) / fewest, 4 * workers / batches);
  const std::size_t chunk = (row_blocks(rows.size()) + parts - 1) / parts * block;
  std::vector<State> others;
  for (std::size_t part = 1; part < parts; ++part) others.insert(others.end(), seen.begin(), seen.end());
  parallel_for(batches * parts, 1, threads, [&](std::size_t begin, std::size_t end) {
    std::vector<float> scores(std::min(together, count) * block);
    for (std::size_t task = begin; task < end; ++task) {
      const std::size_t point = task / parts * together;
      const std::size_t part = task % parts;
      const std::size_t size = std::min(together, count - point);
      State* const states = (part == 0 ? seen.data() : others.data() + (part - 1) * count) + point;
      for (std::size_t first = part * chunk; first < std::min(rows.size(), (part + 1) * chunk);
           first += block) {
        const std::size_t columns = std::min(block, rows.size() - first);
        multiply(points.data() + point * width, size, rows.values(first), columns, width, scores.data());
        const auto what = rows.block_at(first, columns);
        for (std::size_t i = 0; i < size; ++i) states[i].meet(scores.data() + i * columns, what);
      }
    }
  });
  for (std::size_t i = 0; i < others.size(); ++i) seen[i % count].merge(std::move(others[i]));
}

}  // namespace normscope::selectability
