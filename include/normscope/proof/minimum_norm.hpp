#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>

namespace normscope::proof {

/// A convex hull given by an oracle: for a direction q, the point p of its generating set with the smallest
/// qᵀp. Equal ids mean equal points.
struct Hull {
  std::size_t dimension = 0;
  std::function<std::uint64_t(std::span<const double> direction, std::span<double> point)> least;
};

/// A generating point and its weight.
struct PointWeight {
  std::uint64_t id = 0;
  double weight = 0.0;
};

struct MinimumNorm {
  std::vector<double> point{};        ///< Σ weight · point(id)
  std::vector<PointWeight> shares{};  ///< weights > 0 with sum 1
  double gap = 0.0;                   ///< |x|² − min_p xᵀp; the exact |x*| is at least |x| − gap/|x|
  std::size_t iterations = 0;
  bool converged = false;  ///< the gap is below tolerance · |x|², or x is zero to rounding
};

/// The point of `hull` nearest to the origin, by Wolfe's active-set method: finite, and exact up to
/// rounding. Callers do not trust it: see their `verify` functions.
///
/// Source    [Wolfe 1976, Finding the nearest point in a polytope]
///
/// Errors    Cancelled; progress counts the decimal digits of the gap, of those that `tolerance` asks for
///
/// Cost      one call of the oracle and O(k² + k dimension) per iteration, k the points with weight in x
[[nodiscard]] MinimumNorm minimum_norm_point(const Hull& hull, double tolerance = 1e-12,
                                             std::size_t iterations = 100000, const Progress& progress = {});

/// The outline of the convex hull of a few points, for drawing: in the plane one polygon; in space one
/// polygon per face, or a single one if all points lie in a plane. Each lists rows of `points` in the order
/// around it; a segment has two, a single point one. Rows within `tolerance` times the points' extent of an
/// edge or face of others are left out, so this does not decide which points are vertices:
/// `selectability::select_keys` does.
///
/// Shapes    points (any rows, 2 or 3)
///
/// Errors    Shape; Argument for an entry that is not finite
///
/// Accuracy  no row is further than 2 `tolerance` of the extent outside (test: Faces.NoPointIsOutside)
///
/// Cost      O(rows log rows) in the plane, up to O(rows⁴) in space
[[nodiscard]] std::vector<std::vector<std::size_t>> hull_faces(MatrixView<const double> points,
                                                               double tolerance = 1e-9);

}  // namespace normscope::proof
