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
/// Shapes    query, key (head_dim × norm.width); query_bias (head_dim, or empty)
struct HeadMaps {
  MatrixView<const double> query{};
  std::span<const double> query_bias{};
  MatrixView<const double> key{};
  double scale = 0.0;  ///< of the scores, usually 1/sqrt(head_dim)
};

/// An extreme of the spread over every row the norm can put out, proved: it lies in [lower, upper].
struct Spread {
  double lower = 0.0;
  double upper = 0.0;
  std::vector<double> query{};  ///< (head_dim) that attains it to rounding
  std::vector<double> row{};    ///< (width) that makes it: r G u + β, what the norm would put out
};

struct Attention {
  Spread most_uniform{};
  Spread sharpest{};
  /// The same with Π left out of the norm; absent where the norm has none.
  std::optional<Spread> uniform_without_projection{};
  std::optional<Spread> sharpest_without_projection{};
  /// Without scaling rows have no bound. Then some query gives all keys one score, exactly, when this holds;
  /// and if any query tells two keys apart, sharpness has no bound either.
  bool uniform_without_scaling = false;
};

/// The most uniform and the sharpest attention of a head over every context.
/// With eps > 0 the norm fills the open ball, and what is attained on its surface is a limit; with eps = 0 it
/// fills the surface only, and `lower` of the most uniform is a bound that need not be attained.
///
/// Source    [Brody et al. 2023, section 3.1], for one head's maps, gain and biases
/// Errors    Shape; Argument for an entry that is not finite; Unsupported for several groups
/// Accuracy  upper − lower <= 1e-10 of the largest spread the sizes of the maps allow
///           (test: Attention.BoundsMeet)
/// Cost      O(width head_dim² + head_dim³)
[[nodiscard]] Attention attention(const NormSpec& norm, const HeadMaps& head);

}  // namespace normscope::selectability
