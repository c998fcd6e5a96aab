#pragma once

#include <normscope/core/norm_spec.hpp>

/// What a few sums over the gain tell about a norm's image without a single eigenvalue. M = R² G Π G
/// is the matrix whose eigenvalues are the squared semi-axes.
///
/// Cost      O(N)
/// Accuracy  1e-13 relative (test: Moments.AgreeWithTheSemiAxes)
namespace normscope::geometry {

/// Σ of the squared semi-axes: tr M.
[[nodiscard]] double energy(const NormSpec& spec);

/// Participation ratio (tr M)² / tr M²: how many equally long axes would carry the same energy in
/// the same way; N − 1 for a LayerNorm with equal gains, 1 when one axis has it all. 0 for an image
/// that is a point.
[[nodiscard]] double effective_dimension(const NormSpec& spec);

/// tr(A B) / sqrt(tr A² tr B²) for the image matrices A, B of two norms of the same width: 1 when
/// they stretch the same directions in the same proportion, 0 when none in common.
/// Errors    Shape when widths differ
[[nodiscard]] double image_similarity(const NormSpec& a, const NormSpec& b);

}  // namespace normscope::geometry
