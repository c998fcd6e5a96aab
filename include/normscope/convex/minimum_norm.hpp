#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <normscope/core/progress.hpp>

namespace normscope::convex {

/// A convex hull known by asking: for a direction q, the point p of its generating set with the least
/// qᵀp. Two answers with the same id are the same point.
struct Hull {
  std::size_t dimension = 0;
  std::function<std::uint64_t(std::span<const double> direction, std::span<double> point)> least;
};

/// A generating point and its share.
struct Share {
  std::uint64_t id = 0;
  double weight = 0.0;
};

struct MinimumNorm {
  std::vector<double> point{};  ///< Σ weight · point(id)
  std::vector<Share> shares{};  ///< weights > 0 with sum 1
  double gap = 0.0;             ///< |x|² − min_p xᵀp; the exact |x*| is at least |x| − gap/|x|
  std::size_t iterations = 0;
  bool converged = false;  ///< the gap is below tolerance · |x|², or x is zero to rounding
};

/// The point of `hull` nearest to the origin, by Wolfe's active-set method: finite, and exact up to
/// rounding. Nothing downstream trusts it: see the `verify` functions of those who call it.
///
/// Source    [Wolfe 1976, Finding the nearest point in a polytope]
/// Errors    Cancelled; progress counts the decimal digits of the gap, of those that `tolerance` asks for
/// Cost      one question to the hull and O(k² + k dimension) an iteration, k the points that carry x
[[nodiscard]] MinimumNorm minimum_norm_point(const Hull& hull, double tolerance = 1e-12,
                                             std::size_t iterations = 100000, const Progress& progress = {});

}  // namespace normscope::convex
