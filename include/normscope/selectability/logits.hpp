#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

namespace normscope::selectability {

/// Logits after a norm, as functions of the scaled row u, a point of the unit ball: with h = r g ⊙ u + β, r
/// the norm's radius, the logits W h + c are A u + a₀,
///   A = r W G Π  (rms and spherical: without Π),  a₀ = W β + c.
/// The mean over tokens is subtracted from W and from c, which changes no difference of logits.
struct Logits {
  std::size_t tokens = 0;
  std::size_t width = 0;
  std::vector<double> rows{};     ///< A, tokens × width
  std::vector<double> offsets{};  ///< a₀
  double scale = 0.0;             ///< largest length of a row plus size of its offset
  double rounding = 0.0;          ///< bound of the rounding error of any logit
  double terms = 0.0;             ///< bound of Σ_k |W_jk h_k| + |c_j| for any j
  double shifted = 0.0;           ///< largest Σ_k |W_jk β_k|
  /// Sizes of each token, relative to which proofs about it are judged, however large other tokens are.
  struct Own {
    double size = 0.0;            ///< |A_j| + |a_j|, with or without the common mean, whichever is smaller
    double rounding = 0.0;        ///< bound of the rounding error of its logit
    double rounding_error = 0.0;  ///< the part of `rounding` that is due to the token's own weights
  };
  std::vector<Own> own{};
  /// eps = 0: the norm gives points of the sphere only, |u| = 1.
  bool sphere = false;
  /// The norm subtracts the mean: the entries of u sum to zero, and those of rows do up to rounding.
  bool centers = false;
  /// Per token another token with the same weights and bias, or the largest `std::size_t`; empty if all
  /// differ. Such duplicates have equal logits: neither ever leads.
  std::vector<std::size_t> duplicates{};

  /// Leads up to this count as ties: `relative` times the scale, and at least the rounding error of a lead.
  [[nodiscard]] double tolerance(double relative) const { return std::max(relative * scale, 8.0 * rounding); }
  /// A lead above this is one in float32 too: twice the error of W h + c, summed in any order from the norm's
  /// output h, all rounded to float32, γ_{width+4} (Σ |W h| + |c|).
  [[nodiscard]] double float32_lead() const {
    const double units = 0x1p-24 * static_cast<double>(width + 4);
    return units < 0.5 ? 2.0 * units / (1.0 - units) * terms : std::numeric_limits<double>::infinity();
  }
  [[nodiscard]] MatrixView<const double> view() const { return {rows.data(), tokens, width}; }
  /// Groups of two or more tokens with equal weights and bias, each in order.
  [[nodiscard]] std::vector<std::vector<std::size_t>> ties() const;
  /// Dimension of the space of u.
  [[nodiscard]] std::size_t dimension() const { return centers ? width - 1 : width; }
};

/// The logits of `unembedding` (tokens × width) and `bias` (tokens, or empty) after `norm`.
/// With eps > 0 the norm fills the open ball; a strict inequality that holds in the closed one holds in it.
/// With eps = 0 it fills the sphere, and is not defined for a row that is constant (layer) or zero.
///
/// Source    [Ba et al. 2016], [Brody et al. 2023]
///
/// Errors    Shape; Argument for an entry that is not finite, for logits that `expect_accepted_logits`
///           refuses, and for a norm with eps = 0 whose output is two points or 0/0 (layer: width 1 or 2,
///           others: width 1); Unsupported for several groups
///
/// Accuracy  a logit at a point of the ball is within `rounding` of the exact one
///           (test: Reach.FoldedLogitsAreWithinTheirRounding)
///
/// Cost      O(tokens width)
[[nodiscard]] Logits fold(const NormSpec& norm, MatrixView<const double> unembedding,
                          std::span<const double> bias);

}  // namespace normscope::selectability
