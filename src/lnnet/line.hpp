#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <normscope/lnnet/construct.hpp>

/// The stable mode's line of clusters. Three neurons hold q = √2/w in the third of them: with
///   h = (1 − C q, C q − 1, √3 R q)
/// the mean is exactly h₃/3 in floating point, so LN gives a third entry that is accurate relative to
/// itself however small it is, and 1/q' = sqrt(1 + ((1/q − C)/R)²)/√2. Written with the columns
/// (1, −1, 0)/√2 and (1, 1, −2)/√6 it would be accurate relative to the other two entries only.
namespace normscope::lnnet {

struct Line {
  std::vector<double> q;               ///< descending: 1/q ascending, the near end first
  std::vector<std::uint32_t> classes;  ///< of each cluster
  std::vector<std::size_t> rows;       ///< a sample of each cluster
  std::vector<Fold> folds;             ///< done, the first layer's fold included
  std::size_t runs = 0;
};

/// The layer after the first: what `evaluate` computes for it is `fold_step`, bit by bit.
[[nodiscard]] Layer fold_layer(const Fold& fold);
/// The first layer: a fold of the projection onto `direction`.
[[nodiscard]] Layer first_layer(const std::vector<double>& direction, const Fold& fold);

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
[[nodiscard]] LineState advance(Line& line, const FoldRules& rules, std::size_t most);

}  // namespace normscope::lnnet
