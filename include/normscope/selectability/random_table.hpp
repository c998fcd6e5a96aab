#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>

/// How often random keys cannot be selected, over their width and number.
namespace normscope::selectability {

struct RandomTable {
  std::size_t least_width = 3;
  std::size_t most_width = 15;
  std::size_t least_count = 3;
  std::size_t most_count = 60;
  std::size_t runs = 100;  ///< sets of keys per cell
  std::uint64_t seed = 1;
  /// Applied to every set of keys first; nothing when empty.
  std::function<void(MatrixView<double> keys)> transform{};
};

struct RandomCell {
  std::size_t width = 0;
  std::size_t count = 0;
  double any = 0.0;   ///< share of sets with at least one key that cannot be selected
  double mean = 0.0;  ///< mean share of such keys
  std::size_t undecided = 0;
};

/// Decides sets of independent normal keys, cell by cell. The caption of the paper's figure names
/// the mean share, but its colours agree with `any`.
///
/// Source    [Brody, Alon, Yahav 2023, figures 1c and 1d]
///
/// Errors    Argument for ranges that are empty or runs = 0; Cancelled
///
/// Accuracy  the answer does not depend on the number of threads (test: RandomTable.ThreadsDoNotChangeABit)
[[nodiscard]] std::vector<RandomCell> random_table(const RandomTable& table, unsigned threads = 0,
                                                   const Progress& progress = {});

/// A row of the paper's figure: the numbers that its colours stand for, widths 3 to 12.
struct FigureRow {
  std::size_t count = 0;
  std::array<double, 10> shares{};
};

/// Fifteen rows of figure 1c, decoded to 0.01; each of 100 sets of keys per cell.
///
/// Source    [Brody, Alon, Yahav 2023, figure 1c]
[[nodiscard]] const std::vector<FigureRow>& figure_1c();

}  // namespace normscope::selectability
