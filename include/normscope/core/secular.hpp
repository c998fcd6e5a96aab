#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/progress.hpp>

namespace normscope {

/// A root ζ = poles[origin] + offset, stored separately because the offset can be far smaller than the pole's
/// rounding error; `origin` is the nearer of the two poles around the root.
struct SecularRoot {
  std::size_t origin = 0;
  double offset = 0.0;
};

/// The roots of   f(ζ) = Σ_i weights_i / (poles_i − ζ),   one strictly between each two
/// neighbouring poles, in ascending order.
///
/// Each root is found by the rational "middle way" iteration from its nearer pole, so that no
/// difference poles_i − ζ cancels. Poles far from a run of neighbouring gaps enter through one Taylor
/// expansion for the whole run; poles near it are summed one by one.
///
/// Source    [Li 1993, LAPACK working note 89] for the iteration; docs/design/secular.md for the sums
///
/// Requires  poles strictly ascending and finite; weights > 0; equal sizes
///
/// Returns   max(0, poles − 1) roots
///
/// Errors    Cancelled
///
/// Accuracy  |f(ζ)| <= 64 u Σ |weights_i / (poles_i − ζ)| (test: Secular.ResidualIsAtRoundingLevel)
///
/// Cost      about N²/40 multiply-adds and 200 N divisions at ordinary spacing; O(N) memory;
///           `threads` as in `parallel_for`
[[nodiscard]] std::vector<SecularRoot> secular_roots(std::span<const double> poles,
                                                     std::span<const double> weights, unsigned threads = 1,
                                                     const Progress& progress = {});

/// The same roots by bisection over plain sums in extended precision: slow, for tests.
[[nodiscard]] std::vector<SecularRoot> secular_roots_reference(std::span<const double> poles,
                                                               std::span<const double> weights);

}  // namespace normscope
