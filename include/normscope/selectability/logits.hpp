#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

namespace normscope::selectability {

/// Logits behind a norm, as functions of where in the unit ball the scaled row is: with
/// h = r g ⊙ u + β, r the norm's radius, the logits W h + c are A u + a₀,
///   A = r W G Π  (rms and spherical: without Π),  a₀ = W β + c.
/// What is common to all tokens, the mean of W and c, is taken out of both: it changes no difference.
struct Logits {
  std::size_t tokens = 0;
  std::size_t width = 0;
  std::vector<double> rows{};     ///< A, tokens × width
  std::vector<double> offsets{};  ///< a₀
  double scale = 0.0;             ///< largest length of a row plus size of its offset
  double rounding = 0.0;          ///< bound of what rounding did to any logit on its way here
  /// What a proof about some tokens is measured by, however large others are. Per token.
  struct Own {
    double size = 0.0;      ///< |A_j| + |a_j|, with the common mean or without, whichever is less
    double rounding = 0.0;  ///< bound of what rounding did to its logit
    double feigned = 0.0;   ///< that part of it that its own weights explain
  };
  std::vector<Own> own{};
  /// eps = 0: the norm gives only what lies on the sphere, |u| = 1.
  bool sphere = false;
  /// The norm centers: it gives only u whose entries sum to zero, and rows sum to zero but for rounding.
  bool centers = false;
  /// Per token another one of the same weights and bias, or the largest number there is; empty where all
  /// differ. Equal tokens have equal logits whatever rounding did: neither ever leads.
  std::vector<std::size_t> twins{};

  /// A lead no larger than this is none: `relative` of the scale, and no less than rounding may feign.
  [[nodiscard]] double tolerance(double relative) const { return std::max(relative * scale, 8.0 * rounding); }
  [[nodiscard]] MatrixView<const double> view() const { return {rows.data(), tokens, width}; }
  /// Dimension of the space that u is in.
  [[nodiscard]] std::size_t dimension() const { return centers ? width - 1 : width; }
};

/// The logits of `unembedding` (tokens × width) and `bias` (tokens, or empty) behind `norm`.
/// With eps > 0 the norm fills the open ball; a strict inequality that holds in the closed one holds in it.
/// With eps = 0 it fills the sphere, and is not defined for a row that is constant (layer) or zero.
///
/// Source    [Ba et al. 2016], [Brody et al. 2023]
/// Errors    Shape; Argument for an entry that is not finite, for logits beyond a double's range, and for a
///           layer norm of width 1 with eps = 0, which gives 0/0 always; Unsupported for several groups
/// Accuracy  a logit at a point of the ball is within `rounding` of the exact one
///           (test: Reach.FoldedLogitsAreWithinTheirRounding)
/// Cost      O(tokens width)
[[nodiscard]] Logits fold(const NormSpec& norm, MatrixView<const double> unembedding,
                          std::span<const double> bias);

}  // namespace normscope::selectability
