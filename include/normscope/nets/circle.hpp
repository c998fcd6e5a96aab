#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/nets/net.hpp>
#include <normscope/nets/train.hpp>

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

/// Records of a training, for a figure.
struct Curves {
  std::vector<double> step;
  std::vector<double> loss;
  std::vector<double> accuracy;
};

/// At most `most` + 1 records: every n-th and the last.
///
/// Shapes    loss, accuracy (records)
///
/// Requires  most >= 1
[[nodiscard]] Curves thinned(std::span<const double> loss, std::span<const double> accuracy,
                             std::size_t record_every, std::size_t most);

// The animation of a data set from layer to layer.

/// Rows after every layer, padded to the width of the widest: entry 0 is the input, entry l the output of
/// layer l.
struct MorphStates {
  std::size_t width = 0;
  std::vector<std::vector<double>> list{};
};

/// Shapes    x (rows, net.in()) → layers + 1 times rows × width
///
/// Errors    Shape, Argument: see `evaluate`
[[nodiscard]] MorphStates morph_states(const Net& net, MatrixView<const double> x);

/// As `morph_states`, every layer in its two steps: entry 2 l − 1 is W_l · + b_l of the entry before, entry
/// 2 l the output of layer l.
///
/// Shapes    x (rows, net.in()) → 2 layers + 1 times rows × width
///
/// Errors    Shape, Argument: see `evaluate`
[[nodiscard]] MorphStates morph_steps(const Net& net, MatrixView<const double> x);

/// Positions of the samples at time `at` in [l, l + 1]:  (1 − (at − l)) states[l] + (at − l) states[l + 1].
///
/// Shapes    rows × widest layer
///
/// Requires  0 <= at <= layers
[[nodiscard]] std::vector<double> morph_frame(const Net& net, const Dataset& data, double at);

}  // namespace normscope::nets
