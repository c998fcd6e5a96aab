#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>

namespace normscope::norm {

/// The set of all outputs of a norm, before its bias: the (solid, for eps > 0 open) ellipsoid
/// {R · G Π u : |u| <= 1}, G = diag(gain), R = `spec.radius()`; with groups, the product of the
/// ellipsoids of the blocks. Its principal axes are the eigenvectors of R² G Π G, a diagonal minus a
/// rank-one matrix; its semi-axes are R √ζ for the eigenvalues ζ of G Π G. For rms and spherical
/// Π = I and the axes are the coordinates. For elementwise kinds the set is the open box |y_i| < |g_i|, whose
/// semi-axes are its half-widths |g_i|.
///
/// Source    [Riechers 2024, II.1] null space and axes; docs/design/secular.md for the cost
///
/// Accuracy  semi-axes 1e-12 relative for well-separated gains
///           (test: NormImage.SemiAxesMatchADenseEigensolver)
///
/// Limits    a gain below 2^-480 of its block's largest counts as zero
///
/// Cost      all semi-axes: O(N) memory; for the time see `secular_roots`
class NormImage {
 public:
  /// Errors    Argument, Shape: see `validate`; Argument where a semi-axis is beyond the largest double;
  ///           Cancelled
  explicit NormImage(const NormSpec& spec, unsigned threads = 1, const Progress& progress = {});
  NormImage(NormImage&&) noexcept;
  NormImage& operator=(NormImage&&) noexcept;
  ~NormImage();

  /// Entries of a vector of the space the image lies in.
  [[nodiscard]] std::size_t width() const { return width_; }

  /// Number of dimensions that the norm erases: for layer, per block 1 or, if there are any, the number of
  /// its zero gains; for other kinds the number of zero gains.
  [[nodiscard]] std::size_t null_space_dim() const { return width_ - semi_axes_.size(); }

  /// The nonzero semi-axes, descending.
  [[nodiscard]] std::span<const double> semi_axes() const { return semi_axes_; }

  /// Longest semi-axis over shortest nonzero one; 1 when there is none, infinite beyond the largest double.
  [[nodiscard]] double condition() const { return condition_; }

  /// Median of the nonzero semi-axes; 0 when there is none.
  [[nodiscard]] double median() const;

  /// Unit vector along semi-axis `rank` (0: the longest), its largest entry positive.
  ///
  /// Shapes    axis (width)
  ///
  /// Requires  rank < semi_axes().size()
  ///
  /// Cost      O(N)
  void axis(std::size_t rank, std::span<double> axis) const;

  /// Axes `first`, `first` + 1, … as rows, orthonormal even if many eigenvalues are close to a pole: the
  /// gains are first replaced by those for which the computed eigenvalues are exact.
  ///
  /// Source    [Gu, Eisenstat 1994]; [Löwner 1934]
  ///
  /// Shapes    axes (count, width)
  ///
  /// Requires  first + axes.rows() <= semi_axes().size(); axes.width() == width
  ///
  /// Accuracy  |axes · axesᵀ − I| <= 1e-12 an entry
  ///           (test: NormImage.AxesStayOrthogonalWhenRootsCrowdAPole)
  ///
  /// Cost      O(N²) once a call, then O(N) an axis
  void axes(std::size_t first, MatrixView<double> axes, unsigned threads = 1) const;

  /// Orthonormal basis of the null space, one row a vector: with zero gains, their coordinates;
  /// with none, the direction 1/gain of each block.
  ///
  /// Shapes    basis (null_space_dim(), width)
  void null_space(MatrixView<double> basis) const;

 private:
  struct Origin;
  struct Blocks;

  std::size_t width_ = 0;
  std::vector<double> semi_axes_;
  double condition_ = 1.0;
  std::unique_ptr<Blocks> blocks_;
};

/// |cosine| between the longest axes of two images of the same width; 0 if one of them is a point.
///
/// Errors    Shape when widths differ
///
/// Cost      O(N)
[[nodiscard]] double longest_axes_cosine(const NormImage& a, const NormImage& b);

// Properties of a norm's image that are sums over the gain and need no eigenvalues. M = R² G Π G is the
// matrix whose eigenvalues are the squared semi-axes.
//
// Cost      O(N)
//
// Accuracy  1e-13 relative, of `image_similarity` absolute (tests: Moments.AgreeWithTheSemiAxes,
//           Moments.SimilarityIsTheCosineOfTheMatrices), whatever the size of gain and bias
//           (test: Moments.AreScaleInvariant)

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
