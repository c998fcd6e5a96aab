#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

/// Measures how nonlinear a norm is at a point: the Hessian measure H = Σ_i ‖∂²y_i/∂x²‖_F², summed over a
/// row's blocks. On a block, with z, R, s, Π and G as in `norm.hpp`, r = |z|, ẑ = z/r, n the dimension of
/// the space of z (for layer one less than the block's width), A = −3 R r R²eps/s⁵ the curvature along ẑ and
/// B = −R r/s³ that across it:
///   H = A² |Gẑ|² + 2 B² (tr ΠG²Π − |Gẑ|²) + (n−1) B² |Gẑ|²
/// Without gain and eps that is 3(N−2)/(N σ⁴) for layer, 3(N−1)/(N rms⁴) for rms, 3(N−1)/|x|⁴ for spherical.
/// For n = 1 and eps = 0 (layer in groups of two) the norm is a sign function and H = 0 wherever it is
/// smooth, although it is not linear.
///
/// Source    [Ni et al. 2024, Hessian measure]; gain, eps, rms and spherical are ours
///
/// Accuracy  1e-11 relative, for any means of the row and its blocks (tests:
///           Curvature.IsThatOfAutomaticDoubleDerivatives, Curvature.IsIndependentOfBlockMeans)
///
/// Limits    infinite if a block of n >= 2 has zero deviation and eps = 0; a block 1e150 times smaller than
///           its row counts as such, and a gain 1e150 times smaller than the largest as zero; NaN if the row
///           has an entry that is not finite
namespace normscope::norm {

/// H of each row of `x`.
///
/// Shapes    x (rows, spec.width); result (rows)
///
/// Errors    Argument, Shape
///
/// Cost      O(width) a row
[[nodiscard]] std::vector<double> curvature(const NormSpec& spec, MatrixView<const double> x,
                                            unsigned threads = 0);

/// H of each row of `x` for each group count of `groups` instead of `spec.groups`, in one pass: the
/// statistics of the smallest cells that make up every block are computed once, then merged.
///
/// Shapes    x (rows, spec.width); measures (rows, groups.size())
///
/// Errors    Argument, Shape, also for a count that does not divide the width
///
/// Cost      O(width + Σ cells) a row
void curvature_of_groups(const NormSpec& spec, MatrixView<const double> x,
                         std::span<const std::size_t> groups, MatrixView<double> measures,
                         unsigned threads = 0);

/// A lower bound of H with `spec.groups` = g groups divided by H with one group, for every row of width N
/// whose blocks all have nonzero deviation: g(N−2g)/(N−2) for layer, g(N−g)/(N−1) for rms, g²(N−g)/(N−1) for
/// spherical. It is attained exactly if all blocks have equal deviation (and, for layer, equal means). Empty
/// if there is no proof: eps > 0, gains of unequal size, blocks of fewer than 3 (layer) or 2 entries.
///
/// Source    [Ni et al. 2024, proposition on LN-G] sharpened; rms and spherical are ours
///
/// Errors    Argument, Shape
[[nodiscard]] std::optional<double> curvature_ratio_bound(const NormSpec& spec);

/// The effect of a group count on the curvature of a set of rows. If no row counts, the numbers are NaN. The
/// ratios do not depend on the scale of the rows or of the gain if eps = 0 (test:
/// Curvature.AreScaleInvariant).
struct GroupCurvature {
  std::size_t groups = 1;
  std::size_t rows = 0;  ///< rows that count: the norm is twice differentiable and not linear there
  double mean = 0.0;     ///< of H; infinite beyond the largest double
  double ratio = 0.0;    ///< mean of H divided by H with one group at the same row
  double least = 0.0;
  double largest = 0.0;
  std::optional<double> bound;  ///< `curvature_ratio_bound`
};

/// One entry per count of `groups`, over the rows of `x`.
///
/// Shapes    x (rows, spec.width); of_rows (rows, groups.size()), H of each row, or empty where not wanted
///
/// Errors    as `curvature_of_groups`
///
/// Cost      as `curvature_of_groups`
[[nodiscard]] std::vector<GroupCurvature> compare_groups(const NormSpec& spec, MatrixView<const double> x,
                                                         std::span<const std::size_t> groups,
                                                         unsigned threads = 0,
                                                         MatrixView<double> of_rows = {});

/// Smallest block in which the norm varies in two dimensions; for smaller ones nothing is curved at eps = 0.
[[nodiscard]] constexpr std::size_t least_curved_block(NormKind kind) {
  if (is_elementwise(kind)) return 1;
  return facts(kind).centers ? 3 : 2;
}

/// The divisors of `width` that leave blocks of at least `least_curved_block` entries, ascending; 1 alone for
/// elementwise kinds.
[[nodiscard]] std::vector<std::size_t> curving_group_counts(NormKind kind, std::size_t width);

}  // namespace normscope::norm
