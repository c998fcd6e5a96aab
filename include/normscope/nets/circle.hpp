#pragma once

#include <cstddef>
#include <vector>

#include <normscope/core/view.hpp>

/// The effect of u(x) = x/sqrt(|x|² + eps) on the unit circle after a stretch or a shift, the two moves that
/// a linear layer before a norm can make in the plane.
///
/// Source    [Winsor 2022] the operations; the formulas are derived from them
namespace normscope::nets {

/// First coordinate of u(t x, y) for a point (x, y) of the circle:  t x / sqrt(1 + (t² − 1) x² + eps).
///
/// Requires  |x| <= 1, t >= 0, eps >= 0
[[nodiscard]] double stretched(double t, double x, double eps = 0.0);

/// First coordinate of u(x + t, y):  (x + t) / sqrt(1 + 2 t x + t² + eps).
///
/// Requires  |x| <= 1; not t = 1, x = −1 and eps = 0 together
[[nodiscard]] double folded(double t, double x, double eps = 0.0);

/// Height of the surface over the plane; the curves are slices of it: x / sqrt(x² + y² + eps).
[[nodiscard]] double surface(double x, double y, double eps = 0.0);

/// Fraction of the circle that a stretch moves to |x| > level:  (2/π) atan(t sqrt(1 − level²)/level).
///
/// Requires  t >= 0, 0 < level < 1
///
/// Accuracy  against a count of points (test: Circle.StretchGathersTheCircleAtItsEnds)
[[nodiscard]] double stretched_share(double t, double level);

/// Smallest first coordinate after a shift by t > 1:  sqrt(1 − 1/t²), at x = −1/t.
///
/// Requires  t > 1
///
/// Accuracy  against a search (test: Circle.FoldsHaveTheMinimumOfTheFormula)
[[nodiscard]] double fold_minimum(double t);

/// Largest |dθ'/dθ| of the shifted circle's angle:  1/|1 − t|, at the point closest to the origin.
///
/// Requires  t >= 0, t != 1
///
/// Accuracy  against differences (test: Circle.PointsMoveFastestJustBeforeTheFold)
[[nodiscard]] double fold_speed(double t);

/// Largest |dθ'/dt| of the shifted circle's angles, that is their speed relative to the weight t:
/// 1/|1 − t²|, at cos θ = −2t/(1 + t²).
///
/// Requires  t >= 0, t != 1
///
/// Accuracy  against differences (test: Circle.TheShiftMovesPointsFastestJustBeforeTheFold)
[[nodiscard]] double fold_speed_of_shift(double t);

/// Winding number of the shifted circle around the origin, computed from `points` points: 1 before the fold
/// (t < 1), 0 after it.
///
/// Requires  points >= 3, t != 1
[[nodiscard]] int fold_winding(double t, std::size_t points = 4096);

/// The two moves: (x, y) → (t x, y), and (x, y) → (x + t, y).
enum class Move { stretch, shift };

/// Points of the plane after a move.
///
/// Shapes    (rows, 2) → (rows, 2)
[[nodiscard]] std::vector<double> moved(Move move, double t, MatrixView<const double> points);
/// u of points of the plane; the origin is unchanged.
///
/// Shapes    (rows, 2) → (rows, 2)
///
/// Accuracy  first coordinates are `stretched` and `folded` on the circle
///           (test: Circle.MovedPointsLieOnTheCurves)
[[nodiscard]] std::vector<double> normalized(MatrixView<const double> points, double eps = 0.0);

}  // namespace normscope::nets
