#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/view.hpp>

namespace normscope::proof {

/// The outline of the convex hull of a few points, for drawing: in the plane one polygon; in space one
/// polygon per face, or a single one if all points lie in a plane. Each lists rows of `points` in the order
/// around it; a segment has two, a single point one. Rows within `tolerance` times the points' extent of an
/// edge or face of others are left out, so this does not decide which points are vertices:
/// `selectability::keys` does.
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
