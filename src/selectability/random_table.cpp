#include <normscope/selectability/select.hpp>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/random.hpp>

namespace normscope::selectability {
namespace {

void validate(const RandomTable& table) {
  if (table.least_width == 0 || table.least_width > table.most_width || table.least_count == 0 ||
      table.least_count > table.most_count || table.runs == 0) {
    throw Error(
        ErrorCode::Argument,
        fmt::format("random table: widths {} to {}, counts {} to {}, {} runs; expected ranges that "
                    "are not empty and at least one run",
                    table.least_width, table.most_width, table.least_count, table.most_count, table.runs));
  }
}

/// All sets of a cell are drawn from one random stream; every cell has its own.
void fill(const RandomTable& table, RandomCell& cell) {
  Random random(table.seed ^ (0x9e3779b97f4a7c15U * (std::uint64_t{cell.width} << 32U | cell.count)));
  std::vector<double> values(cell.width * cell.count);
  std::size_t sets = 0;
  std::size_t lost = 0;
  for (std::size_t run = 0; run < table.runs; ++run) {
    for (double& value : values) value = random.normal();
    if (table.transform) table.transform({values.data(), cell.count, cell.width});
    const Selection selection = select_keys({values.data(), cell.count, cell.width}, {.threads = 1});
    const std::size_t unselectable = selection.count(Selectability::unselectable);
    cell.undecided += selection.count(Selectability::undecided);
    lost += unselectable;
    if (unselectable > 0) ++sets;
  }
  const double runs = static_cast<double>(table.runs);
  cell.any = static_cast<double>(sets) / runs;
  cell.mean = static_cast<double>(lost) / runs / static_cast<double>(cell.count);
}

}  // namespace

std::vector<RandomCell> random_table(const RandomTable& table, unsigned threads, const Progress& progress) {
  validate(table);
  std::vector<RandomCell> cells;
  for (std::size_t count = table.least_count; count <= table.most_count; ++count) {
    progress("row of the table", count - table.least_count, table.most_count - table.least_count + 1);
    const std::size_t first = cells.size();
    for (std::size_t width = table.least_width; width <= table.most_width; ++width) {
      cells.push_back({.width = width, .count = count});
    }
    parallel_for(cells.size() - first, 1, threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) fill(table, cells[first + i]);
    });
  }
  return cells;
}

const std::vector<FigureRow>& figure_1c() {
  static const std::vector<FigureRow> figure{{5, {0.09, 0, 0, 0, 0, 0, 0, 0, 0, 0}},
                                             {6, {0.41, 0.01, 0, 0, 0, 0, 0, 0, 0, 0}},
                                             {8, {0.74, 0.16, 0.01, 0, 0, 0, 0, 0, 0, 0}},
                                             {10, {0.88, 0.47, 0.07, 0.03, 0, 0, 0, 0, 0, 0}},
                                             {12, {0.99, 0.69, 0.19, 0.03, 0, 0, 0, 0, 0, 0}},
                                             {15, {1, 0.92, 0.46, 0.11, 0.02, 0.01, 0, 0, 0, 0}},
                                             {20, {1, 0.98, 0.8, 0.38, 0.12, 0.01, 0, 0, 0, 0}},
                                             {25, {1, 1, 0.97, 0.64, 0.24, 0.08, 0.02, 0.01, 0, 0}},
                                             {30, {1, 1, 0.99, 0.85, 0.39, 0.27, 0.04, 0.02, 0, 0}},
                                             {35, {1, 1, 0.99, 0.93, 0.67, 0.28, 0.13, 0.03, 0.01, 0}},
                                             {40, {1, 1, 1, 0.98, 0.81, 0.45, 0.18, 0.05, 0.03, 0}},
                                             {45, {1, 1, 1, 1, 0.91, 0.56, 0.2, 0.07, 0.02, 0}},
                                             {50, {1, 1, 1, 1, 0.96, 0.72, 0.37, 0.19, 0.03, 0.03}},
                                             {55, {1, 1, 1, 1, 0.99, 0.87, 0.48, 0.17, 0.09, 0}},
                                             {60, {1, 1, 1, 1, 0.99, 0.87, 0.63, 0.25, 0.09, 0.02}}};
  return figure;
}

}  // namespace normscope::selectability
