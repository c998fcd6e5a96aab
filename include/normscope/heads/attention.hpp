#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

/// Bounds of an attention head over every context: its queries and keys are linear maps of a norm's output,
/// which is bounded. Scores of two keys under a query q differ by at most
///   spread(q) = 2 s |Π G W_Kᵀ q| r,  q = W_Q(r G u + β) + b_Q,  |u| <= 1 (u ⊥ 1 with Π)
/// with s the head's scale and r the norm's radius, and attain it for some pair of keys: no weight in a
/// softmax over any keys is more than e^spread times another. A rotary embedding makes scores depend on
/// distances, and the spread of a query is then the largest over all distances that a context has.
namespace normscope::heads {

/// A rotary embedding: at position p, pair j of the first `dims` coordinates is rotated by p ·
/// frequencies[j], so a key t positions before its query is rotated by −t · frequencies[j] relative to it.
/// Distances t are 0, 1, 2, ...
struct Rotation {
  std::size_t dims = 0;      ///< even, at most head_dim
  bool interleaved = false;  ///< pair j is (2j, 2j + 1), else (j, j + dims/2)
  /// Radians per position (dims/2); empty if unknown, and bounds then hold for all frequencies.
  std::span<const double> frequencies{};
  double score_factor = 1.0;  ///< factor of the first `dims` coordinates' part of a score
};

/// Error bound of each entry of a map; empty if they are exact.
///
/// Shapes    weight (head_dim × norm.width), bias (head_dim)
struct MapError {
  MatrixView<const double> weight{};
  std::span<const double> bias{};
};

/// A head's maps, which are applied to the output of its norm.
///
/// Shapes    query, key (head_dim × norm.width); query_bias, key_bias (head_dim, or empty)
struct HeadMaps {
  MatrixView<const double> query{};
  std::span<const double> query_bias{};
  MatrixView<const double> key{};
  /// Shifts all scores equally, unless keys have a norm of their own or a rotation.
  std::span<const double> key_bias{};
  /// Bounds hold for every map within these errors (test: Attention.HoldsForEveryMapWithinTheErrors).
  MapError query_error{};
  MapError key_error{};
  double scale = 0.0;  ///< of the scores, usually 1/sqrt(head_dim)
  /// Norms of width head_dim that are applied to queries and keys before scores are computed, or none.
  const NormSpec* query_norm = nullptr;
  const NormSpec* key_norm = nullptr;
  const Rotation* rotation = nullptr;
  std::size_t context = 0;  ///< largest number of positions of a context, 0 for no limit
  std::size_t window = 0;   ///< positions back that the head sees, its own included; 0 for all
  double soft_cap = 0.0;    ///< c of c tanh(score/c), 0 without one
};

/// Limits on the work for bounds.
struct AttentionEffort {
  /// Distances are bounded one by one if there are at most this over head_dim³ of them. A head of 64
  /// coordinates and 8192 positions is within this limit, and takes about 0.3 s.
  double operations = 4.3e9;
};

/// An extreme of the spread over every output of the norm, which provably lies in [lower, upper].
struct Spread {
  double lower = 0.0;
  double upper = 0.0;
  /// The multiplier μ of |u|² <= 1 in the proof of the outer bound, 0 with a rotation: with spread(q) =
  /// |M u + m|, the largest is at most sqrt(μ + |m|² + bᵀ(μI − MᵀM)⁻¹b) with b = Mᵀm; see
  /// `proof::proved_largest`.
  double multiplier = 0.0;
  std::vector<double> query{};  ///< (head_dim) that attains it to rounding; empty where none is known
  std::vector<double> row{};    ///< (width) the norm's output for that query: r G u + β
  /// u, or v of a norm of the queries' own: |u| <= 1 and, with Π, ⊥ 1, both to the last bit that counts.
  std::vector<double> point{};
};

/// Two keys of one context, with the highest and the lowest score, each as a point of the ball and as the
/// norm's output at that point.
struct KeyPair {
  std::size_t high_distance = 0;  ///< from the query; 0 without a rotation
  std::size_t low_distance = 0;
  std::vector<double> high_point{}, low_point{};
  std::vector<double> high_row{}, low_row{};  ///< empty if no output of the norm is known to give the key
};

/// Contexts that prove a lower bound for every query: with k_i and l_i the high and low key of pair i at
/// their positions and g = Σ λ_i (R k_i − R l_i), every query C u + q₀ has a context with a spread of at
/// least q₀ᵀg − |Cᵀg|.
struct UnavoidableContext {
  double share = 0.0;  ///< λ_i >= 0, sum 1
  KeyPair keys{};
};

/// Proof of a bound of spreads at every distance; see `docs/design/heads.md`.
struct WeightProof {
  std::size_t distances = 0;         ///< bounds distances below this; 0 for every distance
  std::vector<double> weights{};     ///< w_j of each pair
  std::vector<double> turns{};       ///< ε_j, 1 for a pair that may be at any angle
  std::vector<std::size_t> still{};  ///< coordinates of N: those that do not rotate, and slow pairs
  std::vector<double> factor{};      ///< F of them, row after row
  double query_multiplier = 0.0;     ///< μ_q of |u|² <= 1 in the bound of the largest |q'|
  double key_multiplier = 0.0;
  double spread = 0.0;  ///< proved upper bound of the spread, before a soft cap
};

/// A proof for one distance after another.
struct DistanceProof {
  std::size_t distances = 0;
  double query_square = 0.0;     ///< κ²
  double key_square = 0.0;       ///< ρ²
  double reach = 0.0;            ///< bounds |qᵀ(R_t k − z)| at each
  std::vector<double> centre{};  ///< z (head_dim)
  double spread = 0.0;
};

/// Bounds of a head with a rotation, over distances.
struct OverDistances {
  /// `most_uniform` and `sharpest` are about contexts with distances below this; 0 for every distance.
  std::size_t within = 0;
  bool enumerated = false;         ///< whether each of these distances has been bounded separately
  double sharpest_anywhere = 0.0;  ///< proved at every distance and for all frequencies
  double uniform_anywhere = 0.0;   ///< for some query, no context at any distance has a larger spread
  /// Bounds for two keys at distance 0, as if without rotation: a simpler problem, which shows the effect of
  /// the projection.
  Spread uniform_at_zero{};
  Spread sharpest_at_zero{};
  std::vector<UnavoidableContext> uniform_at_zero_proof{};
  std::optional<Spread> uniform_at_zero_without_projection{};
  std::optional<Spread> sharpest_at_zero_without_projection{};
  /// Attained spread between two keys at equal distance t, for some t; empty when frequencies
  /// are unknown. Scores of keys there lie in middle ± spread/2 before a soft cap.
  struct At {
    std::size_t distance = 0;
    double spread = 0.0;
    double middle = 0.0;
  };
  std::vector<At> curve{};
  WeightProof everywhere{};
  /// Proof of `uniform_anywhere`: a query, and weights that bound its spread (their `query_multiplier` is not
  /// used). The point is empty if no query is known to be attained.
  std::vector<double> anywhere_point{};
  WeightProof anywhere_proof{};
  std::optional<WeightProof> in_context{};
  std::optional<DistanceProof> by_distance{};
};

/// For norms of the queries' and keys' own: the radius ρ <= 1 of the part of the unit ball that outputs of
/// the head's norm are proved to reach (1 without such norms, 0 if nothing is proved), and σ of the formula
/// at `attention` (0 without such norms).
struct Fills {
  double queries = 1.0;
  double keys = 1.0;
  double queries_radius = 0.0;
  double keys_radius = 0.0;
};

struct Attention {
  Spread most_uniform{};
  Spread sharpest{};
  std::optional<KeyPair> sharpest_keys{};           ///< that attain sharpest.lower with its query
  std::vector<UnavoidableContext> uniform_proof{};  ///< of most_uniform.lower where that is positive
  /// The spreads with Π left out of every norm; absent where there is none, and with a rotation.
  std::optional<Spread> uniform_without_projection{};
  std::optional<Spread> sharpest_without_projection{};
  /// The proof of `uniform_without_projection`, or of that at distance 0.
  std::vector<UnavoidableContext> uniform_without_projection_proof{};
  Fills fills_without_projection{};
  std::optional<OverDistances> distances{};
  /// Whether, without scaling, some query gives all keys the same score. Rows are then unbounded, so if any
  /// query gives two keys different scores, the sharpest spread is unbounded.
  bool uniform_without_scaling = false;
  /// As in `Fills`.
  double queries_fill = 1.0;
  double keys_fill = 1.0;
  double queries_radius = 0.0;
  double keys_radius = 0.0;
  double soft_cap = 0.0;  ///< applied to the spreads; 0 without one

  /// Whether lower and upper bounds are close enough to state one value. With the head's own norms or a
  /// rotation they may differ by more than a thousandth of the sharpest.
  [[nodiscard]] bool narrow() const {
    const bool exact = queries_fill == 1.0 && keys_fill == 1.0 && !distances && soft_cap == 0.0;
    const double room = exact ? sharpest.upper : 1e-3 * sharpest.upper;
    return sharpest.upper - sharpest.lower <= room && most_uniform.upper - most_uniform.lower <= room;
  }
};

/// The most uniform and the sharpest attention of a head over every context.
/// With eps > 0 the norm fills the open ball, and what is attained on its surface is a limit. With eps = 0 it
/// fills the surface only, which gives the same bounds if head_dim < width (width − 1 with Π): some direction
/// changes rows but no query (test: Attention.SphereAttainsTheBoundsIfMapsHaveAKernel). Else `lower` of the
/// most uniform is a bound that need not be attained.
///
/// With a norm of their own, queries are q = r' G' v + β', |v| <= 1, for any maps: outer bounds are over all
/// v, inner bounds over |v| <= ρ, which rows are proved to reach:
///   ρ = σ/sqrt(σ² + N' eps'),  σ = σ_min(Π' W_Q r G Π) − |Π'(W_Q β + b_Q)|;
/// the same for keys. They meet if σ is large compared to eps'; if σ is not positive, only outer bounds
/// exist.
///
/// With a rotation the extremes are over every distance that contexts have, and exact arithmetic is meant:
/// float32 angles are off by 2⁻²⁴ of their size. sharpest.upper is the least of three proofs: weights on the
/// pairs, at every distance; the same with slow pairs kept near their middle; and one distance after another,
/// where `effort` allows (test: RotaryAttention.NoContextIsBeyondTheBounds). sharpest.lower is attained by
/// `sharpest_keys`, two keys at different distances behind the query. Where a context has fewer than two such
/// distances, or frequencies are unknown, it is 0.
///
/// With a soft cap c a spread S becomes at most 2c tanh(S/2c), and attained spreads are those of the capped
/// scores (test: Attention.SoftCapBoundsHold).
///
/// Source    [Brody et al. 2023, section 3.1], for one head's maps, gain and biases
///
/// Errors    Shape; Argument for an entry that is not finite; Unsupported for several groups, and for maps
///           whose sizes with the norm's radius and gain are outside 2^-120 to 2^120
///
/// Accuracy  upper − lower <= 1e-10 of the largest spread the sizes of the maps allow (test:
///           Attention.BoundsMeet); norms of their own and rotations aside (tests:
///           OwnNorms.NoContextIsBeyondTheBounds, OwnNorms.RowsAttainTheBounds,
///           RotaryAttention.BoundsAreTight)
///
/// Cost      O(width head_dim² + head_dim³), and with a rotation O(100 head_dim³ + distances head_dim³/3)
[[nodiscard]] Attention attention(const NormSpec& norm, const HeadMaps& head,
                                  const AttentionEffort& effort = {});

}  // namespace normscope::heads
