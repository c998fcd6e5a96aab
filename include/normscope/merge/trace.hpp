#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/merge/construct.hpp>

/// The effect of Projection Merge on samples, layer by layer, for plotting.
namespace normscope::merge {

/// LN of three neurons is x/|x| in the plane: outputs are √3 U (x/|x|), where the columns of U are an
/// orthonormal basis of the plane orthogonal to (1, 1, 1). This layer is U (wᵀx − midpoint, radius); the
/// second coordinate on the circle is its fold of the line wᵀx about the midpoint.
///
/// Source    [Ni et al. 2024, XOR by one layer]
///
/// Errors    Shape for a direction without entries
///
/// Accuracy  against the definition (test: MergeTrace.OneFoldSolvesExclusiveOr)
[[nodiscard]] lnnet::Layer one_fold(std::span<const double> direction, double midpoint, double radius);

/// The point of the unit circle that three neurons represent after LN; `mode` determines the signs of U.
[[nodiscard]] std::array<double, 2> circle_point(Mode mode, std::span<const double> neurons);

/// The position of `place` after a fold of the line:  1/sqrt(1 + ((place − midpoint)/radius)²) in paper mode,
/// which stores p; 1/√2 divided by that in stable mode, which stores 1/p.
[[nodiscard]] double folded_place(Mode mode, const Fold& fold, double place);

struct MergeTrace {
  std::size_t rows = 0;
  std::size_t layers = 0;
  std::vector<double> direction{};  ///< of the projection
  std::vector<double>
      places{};  ///< (layers + 1) × rows: position on the line before each fold and after the last
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
/// Accuracy  places are `folded_place` of those before to 1e-14 times (1 + |place| + |midpoint|) / radius of
/// the
///           fold, plus 1e-14 times height · place
///           (test: MergeTrace.PlacesAreFoldedLayerByLayer)
[[nodiscard]] MergeTrace merge_trace(const Construction& construction, Mode mode, MatrixView<const double> x);

}  // namespace normscope::merge
