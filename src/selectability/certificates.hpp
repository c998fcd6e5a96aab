#pragma once

#include <cstddef>
#include <span>

#include <normscope/convex/minimum_norm.hpp>
#include <normscope/numeric/exact.hpp>

/// Common parts of the certificates of keys and of tokens.
namespace normscope::selectability {

/// directionᵀ(a − b) in float64, and a bound of its error: enough unless rounding could decide.
[[nodiscard]] Bounded quick_difference_dot(std::span<const double> direction, std::span<const double> a,
                                           std::span<const double> b);

/// The sum of the weights of a certificate about row `index` of `rows`; 0 for invalid weights: negative, not
/// finite, without a positive sum, on the row itself or on a row that does not exist.
[[nodiscard]] double total_weight(std::span<const convex::PointWeight> weights, std::size_t rows,
                                  std::size_t index);

}  // namespace normscope::selectability
