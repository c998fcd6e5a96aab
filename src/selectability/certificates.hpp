#pragma once

#include <cstddef>
#include <span>

#include <normscope/convex/minimum_norm.hpp>
#include <normscope/numeric/exact.hpp>

/// What certificates of keys and of tokens have in common.
namespace normscope::selectability {

/// directionᵀ(a − b) in float64, and a bound of its error: enough unless rounding could decide.
[[nodiscard]] Bounded quick_difference_dot(std::span<const double> direction, std::span<const double> a,
                                           std::span<const double> b);

/// The sum of weights that may prove something about row `index` of `rows`; 0 for weights that are negative,
/// not finite or without a sum, on the row itself or on one that is not there.
[[nodiscard]] double total_weight(std::span<const convex::PointWeight> weights, std::size_t rows,
                                  std::size_t index);

}  // namespace normscope::selectability
