#pragma once

#include <optional>

#include <normscope/core/norm_spec.hpp>

/// Properties of a norm's image that are sums over the gain and need no eigenvalues. M = R² G Π G is the
/// matrix whose eigenvalues are the squared semi-axes.
///
/// Cost      O(N)
///
/// Accuracy  1e-13 relative, of `image_similarity` absolute (tests: Moments.AgreeWithTheSemiAxes,
///           Moments.SimilarityIsTheCosineOfTheMatrices), whatever the size of gain and bias
///           (test: Moments.AreScaleInvariant)
namespace normscope::norm {

/// Σ of the squared semi-axes: tr M. Infinite or less accurate if it leaves the range of normal numbers.
[[nodiscard]] double energy(const NormSpec& spec);

/// Root mean square of |y − b| over the outputs y at eps = 0, the normalized rows being distributed evenly
/// over their sphere: R |g| / √n for blocks of n entries, as each entry of a normalized row is R/√n in root
/// mean square. That is √(tr M / (n − 1)) for layer, √(tr M / n) for the others; 0 for an image that is a
/// point, infinite beyond the largest double.
[[nodiscard]] double rms_radius(const NormSpec& spec);

/// |b| / `rms_radius`: the length of the bias relative to the size of the image. Empty for an image that is a
/// point.
[[nodiscard]] std::optional<double> shift_over_radius(const NormSpec& spec);

/// Participation ratio (tr M)² / tr M²: the number of equally long axes over which energy would be spread as
/// widely as over these; N − 1 for a LayerNorm with equal gains, 1 if a single axis is not zero. 0 for an
/// image that is a point.
[[nodiscard]] double effective_dimension(const NormSpec& spec);

/// tr(A B) / sqrt(tr A² tr B²) for the image matrices A, B of two norms of the same width: 1 when
/// they stretch the same directions in the same proportion, 0 when none in common.
///
/// Errors    Shape when widths differ
[[nodiscard]] double image_similarity(const NormSpec& a, const NormSpec& b);

}  // namespace normscope::norm
