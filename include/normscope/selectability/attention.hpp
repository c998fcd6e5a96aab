#pragma once

#include <optional>
#include <span>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

/// What an attention head can do in any context at all: its queries and keys come from a norm, and a norm
/// bounds both. Scores of two keys under a query q differ by at most
///   spread(q) = 2 s |Π G W_Kᵀ q| r,  q = W_Q(r G u + β) + b_Q,  |u| <= 1 (u ⊥ 1 with Π)
/// with s the head's scale and r the norm's radius, and reach it for some pair of keys: no weight in a
/// softmax over any keys is more than e^spread times another.
namespace normscope::selectability {

/// A head's maps from what its norm puts out.
/// Shapes    query, key (head_dim × norm.width); query_bias, key_bias (head_dim, or empty)
struct HeadMaps {
  MatrixView<const double> query{};
  std::span<const double> query_bias{};
  MatrixView<const double> key{};
  std::span<const double> key_bias{};  ///< moves all scores alike, unless keys have a norm of their own
  double scale = 0.0;                  ///< of the scores, usually 1/sqrt(head_dim)
  /// Norms of width head_dim that queries and keys go through on their way to the scores, or none.
  const NormSpec* query_norm = nullptr;
  const NormSpec* key_norm = nullptr;
};

/// An extreme of the spread over every row the norm can put out, proved: it lies in [lower, upper].
struct Spread {
  double lower = 0.0;
  double upper = 0.0;
  /// Of |u|² <= 1 in the proof of the outer bound: with M and m those of spread(q) = |M u + m|, the largest
  /// is at most sqrt(μ + |m|² + bᵀ(μI − MᵀM)⁻¹b) with b = Mᵀm; see `convex::proved_largest`.
  double multiplier = 0.0;
  std::vector<double> query{};  ///< (head_dim) that attains it to rounding; empty where none is known to
  std::vector<double> row{};    ///< (width) that makes it: r G u + β, what the norm would put out
};

struct Attention {
  Spread most_uniform{};
  Spread sharpest{};
  /// The same with Π left out of every norm; absent where there is none.
  std::optional<Spread> uniform_without_projection{};
  std::optional<Spread> sharpest_without_projection{};
  /// Without scaling rows have no bound. Then some query gives all keys one score, exactly, when this holds;
  /// and if any query tells two keys apart, sharpness has no bound either.
  bool uniform_without_scaling = false;
  /// Of the balls that queries and keys are bound to by norms of their own, the part that rows of the head's
  /// norm are known to reach; 1 without such norms, 0 where nothing is known.
  double queries_fill = 1.0;
  double keys_fill = 1.0;

  /// Whether the bounds say where the extremes are; norms of their own may leave them apart by more than a
  /// thousandth of the sharpest.
  [[nodiscard]] bool narrow() const {
    const double room = queries_fill == 1.0 && keys_fill == 1.0 ? sharpest.upper : 1e-3 * sharpest.upper;
    return sharpest.upper - sharpest.lower <= room && most_uniform.upper - most_uniform.lower <= room;
  }
};

/// The most uniform and the sharpest attention of a head over every context.
/// With eps > 0 the norm fills the open ball, and what is attained on its surface is a limit. With eps = 0 it
/// fills the surface only, which is no difference while head_dim < width, less one with Π: some way along it
/// rows change and queries do not (test: Attention.TheSurfaceDoesWhereMapsHaveAKernel). Else `lower` of the
/// most uniform is a bound that need not be attained.
///
/// A norm of their own makes q = r' G' v + β' with |v| <= 1 of queries, whatever their maps: the bounds are
/// over all v on the one side, on the other over |v| <= ρ, which rows are proved to reach:
///   ρ = σ/sqrt(σ² + N' eps'),  σ = σ_min(Π' W_Q r G Π) − |Π'(W_Q β + b_Q)|;
/// keys alike. They meet where σ is large beside eps', and hold from outside only where it is not positive.
///
/// Source    [Brody et al. 2023, section 3.1], for one head's maps, gain and biases
/// Errors    Shape; Argument for an entry that is not finite; Unsupported for several groups
/// Accuracy  upper − lower <= 1e-10 of the largest spread the sizes of the maps allow (test:
///           Attention.BoundsMeet); norms of their own aside (tests: OwnNorms.NoContextIsBeyondTheBounds,
///           OwnNorms.RowsAttainWhatIsSaid)
/// Cost      O(width head_dim² + head_dim³)
[[nodiscard]] Attention attention(const NormSpec& norm, const HeadMaps& head);

}  // namespace normscope::selectability
