#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::convex {

/// The outline of the convex hull of a few points, to be drawn: in the plane one polygon, in space a polygon
/// a face, or one where all points lie in a plane. Each lists rows of `points` in the order around it; a
/// segment has two, a single point one. Rows that are nearer than `tolerance` of the points' extent to an
/// edge or a face they do not span are left out, so this decides nothing: `selectability::keys` does.
///
/// Shapes    points (any rows, 2 or 3)
/// Errors    Shape; Argument for an entry that is not finite
/// Accuracy  no row is further than 2 `tolerance` of the extent outside (test: Faces.NoPointIsOutside)
/// Cost      O(rows log rows) in the plane, up to O(rows⁴) in space
[[nodiscard]] std::vector<std::vector<std::size_t>> hull_faces(MatrixView<const double> points,
                                                               double tolerance = 1e-9);

}  // namespace normscope::convex
