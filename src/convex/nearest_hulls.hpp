#pragma once

#include <vector>

#include <normscope/convex/minimum_norm.hpp>
#include <normscope/core/progress.hpp>

#include "scaled_hulls.hpp"

namespace normscope::convex {

/// The nearest points of two hulls: their difference in the coordinates of a `ScaledHulls`, and the rows that
/// carry them.
struct NearestHulls {
  ScaledHulls::Exact difference{};
  std::vector<Share> shares{};  ///< on rows through both sets; weights > 0, each set's with sum 1
  /// By how much the difference's length exceeds the distance at most, over the length, as far as the
  /// arithmetic tells.
  double gap = 0.0;
  bool is_zero = false;  ///< the difference is zero to the rounding of the arithmetic
};

/// The nearest points of two hulls by Wolfe's active-set method, from the rows `start` where there are some.
/// All rows are priced rarely: the most violated ones make a pool that is priced by itself until it is
/// through. The weights are refined with residuals in twice the precision.
///
/// Errors    Cancelled
/// Cost      O(rows dimension) a pricing of all rows; O(k (k + dimension)) an iteration, k the rows that
/// carry
[[nodiscard]] NearestHulls nearest_hulls(const ScaledHulls& hulls, const std::vector<Share>& start,
                                         const Progress& progress);

/// The same from the end of that, all of it in twice the precision.
/// Cost      about a hundred times as much an iteration
[[nodiscard]] NearestHulls nearest_hulls_closely(const ScaledHulls& hulls, const std::vector<Share>& start,
                                                 const Progress& progress);

}  // namespace normscope::convex
