#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <normscope/lnnet/construct.hpp>
#include <normscope/numeric/double_double.hpp>

/// The stable mode's line of clusters. Three neurons hold q = √2/w in the third of them: with
///   h = (1 − C q, C q − 1, √3 R q)
/// the mean is exactly h₃/3 in floating point, so LN gives a third entry that is accurate relative to
/// itself however small it is, and 1/q' = sqrt(1 + ((1/q − C)/R)²)/√2. Written with the columns
/// (1, −1, 0)/√2 and (1, 1, −2)/√6 it would be accurate relative to the other two entries only.
namespace normscope::lnnet {

/// What one layer does, as `Fold` tells it, in the numbers that the layer is made of.
template <typename T>
struct Crease {
  std::size_t first = no_row;
  std::size_t second = no_row;
  T midpoint = 0.0;
  T radius = 0.0;
  double gap = 0.0;
  std::size_t runs = 0;

  [[nodiscard]] Fold told() const {
    return {first, second, to_double(midpoint), to_double(radius), gap, runs};
  }
};

template <typename T>
struct Line {
  std::vector<T> q{};                    ///< descending: 1/q ascending, the near end first
  std::vector<std::uint32_t> classes{};  ///< of each cluster
  std::vector<std::size_t> rows{};       ///< a sample of each cluster
  std::vector<Crease<T>> folds{};        ///< done, the first layer's fold included
  std::size_t runs = 0;
};

/// The layer after the first: what it gives is `fold_step`, bit by bit.
template <typename T>
[[nodiscard]] Layer fold_layer(const Crease<T>& fold);
/// The first layer: a fold of the projection onto `direction`.
template <typename T>
[[nodiscard]] Layer first_layer(const std::vector<double>& direction, const Crease<T>& fold);
/// What the first layer's third neuron gives a row.
template <typename T>
[[nodiscard]] T first_step(std::span<const double> row, const std::vector<double>& direction,
                           const Crease<T>& fold);

/// Number of runs of equal classes.
[[nodiscard]] std::size_t count_runs(const std::vector<std::uint32_t>& classes);

/// What a line is folded with.
struct FoldRules {
  std::size_t class_count = 0;
  double kappa = 0.0;
  bool early_stop = true;
  unsigned threads = 0;
};

enum class LineState { folding, done, lost };

/// Folds `line` for up to `most` layers. `lost` where rounding no longer tells two classes apart, or ties
/// cannot be broken.
///
/// Decisions need the front alone, so the far clusters get many layers at once, in the cache and on all
/// threads; how many changes no bit.
template <typename T>
[[nodiscard]] LineState advance(Line<T>& line, const FoldRules& rules, std::size_t most);

}  // namespace normscope::lnnet
