#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <normscope/nets/construct.hpp>

#include "line.hpp"
#include "samples.hpp"

namespace normscope::nets {

/// One attempt of the stable mode.
struct StablePlan {
  std::uint64_t seed = 1;  ///< of the projection
  double kappa = 0.0;
  bool early_stop = true;
  std::size_t save_every = 0;
  unsigned threads = 0;
};

/// The result of an attempt.
struct StableAttempt {
  bool separable = false;    ///< the projection separates the classes
  std::optional<Net> net{};  ///< empty if the precision did not suffice
  std::vector<Fold> folds{};
};

/// Saves an unfinished line.
template <typename T>
using SaveLine = std::function<void(const Line<T>&)>;

/// Folds the distinct rows `x` in T, starting from `resumed` if it contains a line.
///
/// Errors    Cancelled, after `save`
template <typename T>
[[nodiscard]] StableAttempt construct_stable(MatrixView<const double> x, const Samples& samples,
                                             const StablePlan& plan, std::optional<Line<T>> resumed,
                                             const SaveLine<T>& save, const Progress& progress);

}  // namespace normscope::nets
