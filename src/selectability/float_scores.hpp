#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/parallel.hpp>

/// Scores of many rows at many points or directions, in float32: what most rows are decided by.
namespace normscope::selectability {

/// Keys on each side of a block of products; its scores fit into the second-level cache.
inline constexpr std::size_t block = 256;

/// Number of blocks of `count` rows.
inline std::size_t row_blocks(std::size_t count) { return (count + block - 1) / block; }

/// scores(i, j) = a_iᵀ b_j in float32, row-major, with row stride `columns`.
inline void multiply(const float* a, std::size_t rows, const float* b, std::size_t columns, std::size_t width,
                     float* scores) {
  const Factor<float> left(a, rows, width, width);
  const Factor<float> right(b, columns, width, width);
  normscope::multiply(left, right.transposed(), MatrixView<float>(scores, rows, columns));
}

/// Number of scores compared at once; the compiler vectorizes loops over them.
inline constexpr std::size_t lanes = 16;
inline constexpr float lowest = -std::numeric_limits<float>::infinity();

/// The largest of the scores `score_at(i)`, i < count.
template <typename ScoreAt>
float largest(std::size_t count, const ScoreAt& score_at) {
  std::array<float, lanes> best;
  best.fill(lowest);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const float score = score_at(i + lane);
      best[lane] = best[lane] < score ? score : best[lane];
    }
  }
  float result = *std::max_element(best.begin(), best.end());
  for (; i < count; ++i) result = std::max(result, score_at(i));
  return result;
}

/// The largest of `count` scores.
inline float largest(const float* scores, std::size_t count) {
  return largest(count, [scores](std::size_t i) { return scores[i]; });
}

/// best[i] = max(best[i], scores[i]).
inline void keep_larger(const float* scores, std::size_t count, float* best) {
  for (std::size_t i = 0; i < count; ++i) best[i] = best[i] < scores[i] ? scores[i] : best[i];
}

/// Calls `visit(i)` for all scores of groups whose largest score is at least `bar()`, and `below(largest)`
/// for each other group. The bar may rise meanwhile.
template <typename Bar, typename Below, typename Visit>
void visit_high(const float* scores, std::size_t count, const Bar& bar, const Below& below,
                const Visit& visit) {
  for (std::size_t begin = 0; begin < count; begin += lanes) {
    const std::size_t size = std::min(lanes, count - begin);
    const float best = largest(scores + begin, size);
    if (best < bar()) {
      below(best);
      continue;
    }
    for (std::size_t i = begin; i < begin + size; ++i) visit(i);
  }
}

/// Scores all `points` against all rows in float32 and passes each block of scores to the state of its point
/// in `seen`.
///
/// `Rows` has `size()`, `width()` and `values(row)`; `block_at(first, count)` describes a block of rows to
/// the states. A state has `meet(float* scores, const Block&)` for the scores of one block, which it may
/// overwrite, and `merge(State&&)` for those of other rows; neither may depend on how the rows are split, so
/// that threads change no result.
template <typename Rows, typename State>
void scan(std::span<const float> points, const Rows& rows, unsigned threads, std::vector<State>& seen) {
  constexpr std::size_t together = 512;  // points of a product: few would not pay for packing the rows
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

/// The highest score that other rows have at the direction of a row, and the row that has it where that is
/// asked for.
struct HighestScore {
  float score = lowest;
  std::size_t other = 0;
};

/// Screens the blocks of rows [begin, end) among the first `open` rows, each against all rows from its first
/// row on. Each pair of rows is multiplied once in float32: a product serves the direction of its row and, if
/// it is open, that of its column.
///
/// `Rows` has `size()`, `width()`, `values(row)` and the side of a block, `tile`. For the products of `row`
/// with `count` columns, `across(products, row, column, count)` is the highest score at the direction of the
/// row, and `down(products, row, column, count, best)` raises `best` to the scores at the directions of the
/// columns; `find(products, row, rows, column, columns, c, score)` names the row that has the score `score`
/// at the direction of column c. `see(row, highest, column)` takes the highest score at the direction of a
/// row among the block of products that starts at `column`.
template <typename Rows, typename See>
void screen_row_blocks(const Rows& table, std::size_t begin, std::size_t end, std::size_t open,
                       unsigned threads, const See& see) {
  constexpr std::size_t tile = Rows::tile;
  struct Task {
    std::size_t row;
    std::size_t column;
  };
  std::vector<Task> tasks;
  for (std::size_t row = begin * tile; row < std::min(open, end * tile); row += tile) {
    for (std::size_t column = row; column < table.size(); column += tile) tasks.push_back({row, column});
  }
  const auto rows_of = [&](const Task& task) { return std::min(tile, open - task.row); };
  const auto columns_of = [&](const Task& task) { return std::min(tile, table.size() - task.column); };
  // Columns that are open, outside the blocks on the diagonal, which are symmetric.
  const auto served = [&](const Task& task) {
    const std::size_t last = std::min(open, task.column + columns_of(task));
    return task.row == task.column || last <= task.column ? 0 : last - task.column;
  };
  std::vector<HighestScore> highest(tasks.size() * 2 * tile);
  parallel_for(tasks.size(), 1, threads, [&](std::size_t first, std::size_t last) {
    std::vector<float> products(tile * tile);
    std::vector<float> best(tile);
    for (std::size_t i = first; i < last; ++i) {
      const auto [row, column] = tasks[i];
      const std::size_t rows = rows_of(tasks[i]);
      const std::size_t columns = columns_of(tasks[i]);
      const std::size_t both = served(tasks[i]);
      HighestScore* const found = highest.data() + i * 2 * tile;
      multiply(table.values(row), rows, table.values(column), columns, table.width(), products.data());
      std::fill(best.begin(), best.end(), lowest);
      for (std::size_t r = 0; r < rows; ++r) {
        float* const line = products.data() + r * columns;
        if (row == column) line[r] = lowest;
        found[r] = table.across(line, row + r, column, columns);
        if (both > 0) table.down(line, row + r, column, both, best.data());
      }
      for (std::size_t c = 0; c < both; ++c) {
        found[tile + c] = table.find(products.data(), row, rows, column, columns, c, best[c]);
      }
    }
  });
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const HighestScore* const found = highest.data() + i * 2 * tile;
    for (std::size_t r = 0; r < rows_of(tasks[i]); ++r) see(tasks[i].row + r, found[r], tasks[i].column);
    for (std::size_t c = 0; c < served(tasks[i]); ++c) {
      see(tasks[i].column + c, found[tile + c], tasks[i].column);
    }
  }
}

}  // namespace normscope::selectability
