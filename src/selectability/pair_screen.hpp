#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <normscope/core/parallel.hpp>

#include "products.hpp"

namespace normscope::selectability {

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
