#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <normscope/core/exact.hpp>
#include <normscope/nets/construct.hpp>

/// The line of clusters in stable mode. Three neurons store q = √2/w in the third of them: with
///   h = (1 − C q, C q − 1, √3 R q)
/// the mean is exactly h₃/3 in floating point, so LN gives a third entry with full relative accuracy, however
/// small it is, and 1/q' = sqrt(1 + ((1/q − C)/R)²)/√2. With the columns (1, −1, 0)/√2 and (1, 1, −2)/√6 the
/// error would be relative to the other two entries.
namespace normscope::nets {

/// The operation of one layer, in the numbers that the layer is made of.
template <typename T>
struct Crease {
  std::size_t first = no_row;
  std::size_t second = no_row;
  T midpoint = 0.0;
  T radius = 0.0;
  double gap = 0.0;
  std::size_t runs = 0;

  [[nodiscard]] Fold stated() const {
    return {first, second, to_double(midpoint), to_double(radius), gap, runs};
  }
};

template <typename T>
struct Line {
  std::vector<T> q{};                    ///< descending, so 1/q is ascending: the near end comes first
  std::vector<std::uint32_t> classes{};  ///< of each cluster
  std::vector<std::size_t> rows{};       ///< one sample per cluster
  std::vector<Crease<T>> folds{};        ///< folds done, including the first layer's
  std::size_t runs = 0;
};

/// A layer after the first; its output equals `fold_step`, bit by bit.
template <typename T>
[[nodiscard]] Layer fold_layer(const Crease<T>& fold);
/// The first layer: a fold of the projection onto `direction`.
template <typename T>
[[nodiscard]] Layer first_layer(const std::vector<double>& direction, const Crease<T>& fold);
/// The value of a row in the first layer's third neuron.
template <typename T>
[[nodiscard]] T first_step(std::span<const double> row, const std::vector<double>& direction,
                           const Crease<T>& fold);

/// Number of runs of equal classes.
[[nodiscard]] std::size_t count_runs(const std::vector<std::uint32_t>& classes);

/// Parameters for folding a line.
struct FoldRules {
  std::size_t class_count = 0;
  double kappa = 0.0;
  bool early_stop = true;
  unsigned threads = 0;
};

enum class LineState { folding, done, lost };

/// Folds `line` for up to `most` layers. `lost` if rounding no longer separates two classes, or ties cannot
/// be broken.
///
/// Decisions depend only on the front, so many layers are applied to the far clusters at once, in cache and
/// on all threads; their number does not change the bits.
template <typename T>
[[nodiscard]] LineState advance(Line<T>& line, const FoldRules& rules, std::size_t most);

}  // namespace normscope::nets
