#pragma once

#include <span>
#include <vector>

#include <normscope/core/view.hpp>

/// The least and the largest length of an affine image of the unit ball, |M u + m| over |u| <= 1, each proved
/// from both sides. The largest is not a convex problem, but solvable: the trust-region subproblem.
namespace normscope::proof {

struct ExtremeLength {
  std::vector<double> point{};  ///< |u| <= 1
  /// The y by which (yᵀm − |Mᵀy|)/|y| proves `lower` of a least length, M u + m up to rounding; empty
  /// where that is 0.
  std::vector<double> dual{};
  double multiplier = 0.0;  ///< of |u|² <= 1; at most the largest double
  /// The extreme provably lies in [lower, upper], rounding included. `point` attains `upper` of a least
  /// length and `lower` of a largest length.
  double lower = 0.0;
  double upper = 0.0;
};

/// min over |u| <= 1 of |M u + m|.
///
/// Source    [Moré, Sorensen 1983, Computing a trust region step], by one singular value decomposition
///
/// Shapes    matrix (rows >= 1, width >= 1), offset (rows)
///
/// Errors    Shape; Argument for an entry that is not finite
///
/// Accuracy  upper − lower <= (1e-12 + 8 width² 2⁻⁵³) (|M|_F + |m|) (test: TrustRegion.BoundsMeet), for
///           numbers of any size (test: TrustRegion.NumbersOfAnySize)
///
/// Cost      O((rows + width) · min(rows, width)²)
[[nodiscard]] ExtremeLength least_length(MatrixView<const double> matrix, std::span<const double> offset);

/// max over |u| <= 1 of |M u + m|; otherwise as `least_length`.
[[nodiscard]] ExtremeLength largest_length(MatrixView<const double> matrix, std::span<const double> offset);

/// Bounds of the least length from the data, a point and a dual y alone: |M u + m| above, and below
/// (yᵀm − |Mᵀy|)/|y|. Upper is +infinity for a point that is not finite or outside the ball, lower is 0 for a
/// y that is 0, not finite or of another size.
[[nodiscard]] ExtremeLength proved_least(MatrixView<const double> matrix, std::span<const double> offset,
                                         std::span<const double> point, std::span<const double> dual);

/// Bounds of the largest length from the data, a point and a multiplier alone: |M u + m| below, and above,
/// once A = μI − MᵀM is proved positive definite by a Cholesky factor, the square root of
/// μ + |m|² + bᵀA⁻¹b with b = Mᵀm. μ is the first not below `multiplier` to pass.
[[nodiscard]] ExtremeLength proved_largest(MatrixView<const double> matrix, std::span<const double> offset,
                                           std::span<const double> point, double multiplier);

}  // namespace normscope::proof
