#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/nets/construct.hpp>

/// The effect of Projection Merge on samples, layer by layer, for plotting.
namespace normscope::nets {

/// A linear layer to three neurons, then LN. The neurons are U z with z = (wᵀx − midpoint, radius), and LN
/// gives √3 U z/|z|, where the columns of U are an orthonormal basis of the plane orthogonal to (1, 1, 1).
/// The second coordinate of z/|z| depends on |wᵀx − midpoint| only: the layer folds the line at the midpoint.
///
/// Source    [Ni et al. 2024, XOR by one layer]
///
/// Errors    Shape for a direction without entries
///
/// Accuracy  against the definition (test: MergeTrace.OneFoldSolvesExclusiveOr)
[[nodiscard]] Layer one_fold(std::span<const double> direction, double midpoint, double radius);

/// The point of the unit circle that three neurons represent after LN; `mode` determines the signs of U.
[[nodiscard]] std::array<double, 2> circle_point(Mode mode, std::span<const double> neurons);

/// The coordinate of `place` after a fold of the line: with h = sqrt(1 + ((place − midpoint)/radius)²), 1/h
/// in paper mode and h/√2, the inverse of the third neuron, in stable mode.
[[nodiscard]] double folded_place(Mode mode, const Fold& fold, double place);

struct MergeTrace {
  std::size_t rows = 0;
  std::size_t layers = 0;
  std::vector<double> direction{};  ///< of the projection
  /// (layers + 1) × rows: position on the line before each fold and after the last.
  std::vector<double> places{};
  std::vector<double> neurons{};  ///< layers × rows × 3
  std::vector<double> circle{};   ///< layers × rows × 2, position on the unit circle
};

/// The positions for a `construction` made in `mode` without eps, for rows of `x`. They are computed by
/// evaluating the net (`trace`), not taken from the construction's predictions.
///
/// Shapes    x (rows, net.in())
///
/// Errors    Shape, Argument: see `evaluate`
///
/// Accuracy  for a place x before a fold and h as in `folded_place`, the place x' behind it is within
///           1e-14 ((1 + |x| + |midpoint|)/radius + h x') of `folded_place`
///           (test: MergeTrace.PlacesAreFoldedLayerByLayer)
[[nodiscard]] MergeTrace merge_trace(const Construction& construction, Mode mode, MatrixView<const double> x);

}  // namespace normscope::nets
