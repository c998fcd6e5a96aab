#pragma once

#include <optional>
#include <span>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

/// How nonlinear a norm is at a point: the Hessian measure H = Σ_i ‖∂²y_i/∂x²‖_F², Σ over a row's blocks.
/// On a block let z, R, s be as in `jacobian.hpp`, r = |z|, ẑ = z/r, n the dimension z moves in (one less
/// than the block's width for layer), A = −3 R r R²eps/s⁵ the curvature along ẑ, B = −R r/s³ across it:
///   H = A² |Gẑ|² + 2 B² (tr ΠG²Π − |Gẑ|²) + (n−1) B² |Gẑ|²
/// Without gain and eps that is 3(N−2)/(N σ⁴) for layer, 3(N−1)/(N rms⁴) for rms, 3(N−1)/|x|⁴ for
/// spherical. It is 0 for n = 1 without eps (layer in groups of two), where the norm is a sign: flat
/// wherever it is smooth, and not linear for all that.
///
/// Source    [Ni et al. 2024, Hessian measure]; gain, eps, rms and spherical are ours
/// Accuracy  1e-11 relative, whatever the means of the row and of its blocks
///           (tests: Curvature.IsThatOfAutomaticDoubleDerivatives, Curvature.DoesNotSeeWhereItsBlocksLie)
/// Limits    infinity where a block of n >= 2 has no deviation and eps = 0; a block 1e150 times smaller
///           than its row counts as one, a gain 1e150 times smaller than the largest as zero; NaN where the
///           row has an entry that is not finite
namespace normscope::norm {

/// H of each row of `x`.
/// Shapes    x (rows, spec.width); result (rows)
/// Errors    Argument, Shape
/// Cost      O(width) a row
[[nodiscard]] std::vector<double> curvature(const NormSpec& spec, MatrixView<const double> x,
                                            unsigned threads = 0);

/// H of each row of `x` under each group count of `groups` in place of `spec.groups`, in one pass: the
/// statistics of the smallest cells that every block is made of are taken once, then merged.
/// Shapes    x (rows, spec.width); measures (rows, groups.size())
/// Errors    Argument, Shape, also for a count that does not divide the width
/// Cost      O(width + Σ cells) a row
void curvature_of_groups(const NormSpec& spec, MatrixView<const double> x,
                         std::span<const std::size_t> groups, MatrixView<double> measures,
                         unsigned threads = 0);

/// What H with `spec.groups` = g groups is at least, over H with one, at every row of width N whose
/// blocks all deviate: g(N−2g)/(N−2) for layer, g(N−g)/(N−1) for rms, g²(N−g)/(N−1) for spherical;
/// reached exactly where all blocks deviate equally (and, for layer, have equal means).
/// None where that is not proved: eps > 0, gains of unequal size, blocks of less than 3 (layer) or 2.
///
/// Source    [Ni et al. 2024, proposition on LN-G] sharpened; rms and spherical are ours
/// Errors    Argument, Shape
[[nodiscard]] std::optional<double> curvature_ratio_bound(const NormSpec& spec);

/// What a group count does to the curvature of a set of rows. Where no row counts the numbers are NaN. The
/// ratios do not depend on the size of the rows or of the gain, at eps = 0 (test:
/// Curvature.RatiosDoNotSeeSizes).
struct GroupCurvature {
  std::size_t groups = 1;
  std::size_t rows = 0;  ///< rows that count: the norm is twice differentiable there, and not linear
  double mean = 0.0;     ///< of H; infinite beyond the largest double
  double ratio = 0.0;    ///< of H over H with one group at the same row, the mean
  double least = 0.0;
  double largest = 0.0;
  std::optional<double> bound;  ///< `curvature_ratio_bound`
};

/// One entry a count of `groups`, over the rows of `x`.
/// Shapes    x (rows, spec.width); of_rows (rows, groups.size()), H of each row, or empty where not wanted
/// Errors    as `curvature_of_groups`
/// Cost      as `curvature_of_groups`
[[nodiscard]] std::vector<GroupCurvature> compare_groups(const NormSpec& spec, MatrixView<const double> x,
                                                         std::span<const std::size_t> groups,
                                                         unsigned threads = 0,
                                                         MatrixView<double> of_rows = {});

/// Entries a block needs so that it moves in two dimensions, without which nothing is curved at eps = 0.
[[nodiscard]] constexpr std::size_t least_curved_block(NormKind kind) {
  return kind == NormKind::layer ? 3 : 2;
}

/// The divisors of `width` that leave blocks of at least `least_curved_block` entries, ascending.
[[nodiscard]] std::vector<std::size_t> curving_group_counts(NormKind kind, std::size_t width);

}  // namespace normscope::norm
