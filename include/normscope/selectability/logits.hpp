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
/// What is common to all tokens, their mean, is taken out of both: it changes no difference.
struct Logits {
  std::size_t tokens = 0;
  std::size_t width = 0;
  std::vector<double> rows{};     ///< A, tokens × width
  std::vector<double> offsets{};  ///< a₀
  double scale = 0.0;             ///< largest length of a row plus size of its offset
  double rounding = 0.0;          ///< bound of what rounding did to any logit on its way here

  /// A lead no larger than this is none: `relative` of the scale, and no less than rounding may feign.
  [[nodiscard]] double tolerance(double relative) const { return std::max(relative * scale, 8.0 * rounding); }
  [[nodiscard]] MatrixView<const double> view() const { return {rows.data(), tokens, width}; }
};

/// The logits of `unembedding` (tokens × width) and `bias` (tokens, or empty) behind `norm`.
/// With eps > 0 the norm fills the open ball; a strict inequality that holds in the closed one holds in it.
/// Without, it fills the sphere only, and the ball stands for it: what is unreachable stays so.
///
/// Source    [Ba et al. 2016], [Brody et al. 2023]
/// Errors    Shape; Argument for an entry that is not finite; Unsupported for several groups
/// Cost      O(tokens width)
[[nodiscard]] Logits fold(const NormSpec& norm, MatrixView<const double> unembedding,
                          std::span<const double> bias);

}  // namespace normscope::selectability
