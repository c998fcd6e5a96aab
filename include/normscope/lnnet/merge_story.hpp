#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/lnnet/construct.hpp>

/// What Projection Merge does to samples, layer by layer, to be looked at.
namespace normscope::lnnet {

/// LN of three neurons is x/|x| in the plane: they are √3 U (x/|x|) with the columns of U an orthonormal
/// basis of the plane orthogonal to (1, 1, 1). This is the layer U (wᵀx − midpoint, radius), whose fold of
/// the line wᵀx about the midpoint the circle's second coordinate is.
///
/// Source    [Ni et al. 2024, XOR by one layer]
/// Errors    Shape for a direction without entries
/// Accuracy  against the definition (test: MergeStory.OneFoldSolvesExclusiveOr)
[[nodiscard]] Layer one_fold(std::span<const double> direction, double midpoint, double radius);

/// The point of the unit circle that three neurons behind LN stand for; `mode` says which of U's signs.
[[nodiscard]] std::array<double, 2> circle_point(Mode mode, std::span<const double> neurons);

/// Where a fold puts a place of the line:  1/sqrt(1 + ((place − midpoint)/radius)²) in paper mode, which
/// keeps p; 1/√2 over that in stable mode, which keeps 1/p.
[[nodiscard]] double folded_place(Mode mode, const Fold& fold, double place);

struct MergeStory {
  std::size_t rows = 0;
  std::size_t layers = 0;
  std::vector<double> direction{};  ///< of the projection
  std::vector<double> places{};   ///< (layers + 1) × rows: on the line, before each fold and behind the last
  std::vector<double> neurons{};  ///< layers × rows × 3
  std::vector<double> circle{};   ///< layers × rows × 2, where they are on the unit circle
};

/// The story of `construction`, made in `mode` without eps, for rows of `x`, as its net itself tells it:
/// from `trace`, not from what the construction foresaw.
///
/// Shapes    x (rows, what the net reads)
/// Errors    Shape, Argument: see `evaluate`
/// Accuracy  places are `folded_place` of those before to 1e-9 relative
///           (test: MergeStory.PlacesAreFoldedLayerByLayer)
[[nodiscard]] MergeStory merge_story(const Construction& construction, Mode mode, MatrixView<const double> x);

}  // namespace normscope::lnnet
