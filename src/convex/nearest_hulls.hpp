#pragma once

#include <vector>

#include <normscope/convex/minimum_norm.hpp>
#include <normscope/core/progress.hpp>

#include "scaled_hulls.hpp"

namespace normscope::convex {

/// The nearest points of two hulls: their difference in the coordinates of a `ScaledHulls`, and the active
/// rows.
struct NearestHulls {
  ScaledHulls::Exact difference{};
  std::vector<PointWeight>
      shares{};  ///< rows numbered through both sets; weights > 0 that sum to 1 in each set
  /// Relative amount by which the length of the difference may exceed the distance, to the accuracy of the
  /// arithmetic.
  double gap = 0.0;
  bool is_zero = false;  ///< the difference is zero up to rounding
};

/// The nearest points of two hulls by Wolfe's active-set method, starting from the rows `start` if there are
/// any. Pricing all rows is rare: the most violated ones form a pool that is priced alone until none of it is
/// violated. The weights are refined with residuals in twice the precision.
///
/// Errors    Cancelled
///
/// Cost      O(rows dimension) per pricing of all rows; O(k (k + dimension)) per iteration with k active rows
[[nodiscard]] NearestHulls nearest_hulls(const ScaledHulls& hulls, const std::vector<PointWeight>& start,
                                         const Progress& progress);

/// Continues from that result, entirely in twice the precision.
///
/// Cost      about 100 times as much per iteration
[[nodiscard]] NearestHulls nearest_hulls_closely(const ScaledHulls& hulls,
                                                 const std::vector<PointWeight>& start,
                                                 const Progress& progress);

}  // namespace normscope::convex
