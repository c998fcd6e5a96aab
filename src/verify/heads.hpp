#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <normscope/verify/verify.hpp>

#include "arithmetic.hpp"
#include "document.hpp"

/// Queries C u + c and keys K v + d of an attention head, |u|, |v| <= 1, recomputed from its weights, and
/// bounds of its spread, the difference of two keys' scores under one query, recomputed from certificates.
namespace normscope::verify {

struct HeadSide {
  Matrix map{};           ///< head_dim × width of the ball
  Column constant{};      ///< head_dim
  Matrix gram{};          ///< map mapᵀ
  std::size_t terms = 0;  ///< products in an entry of it, for the bound of its rounding
  double map_size = 0.0;  ///< Frobenius norm
  double constant_size = 0.0;
  /// For a head with its own norm: Π'(W x + b) for rows x = r G Π u + β, as a map of u, and N' eps'.
  bool has_own_norm = false;
  bool own_centers = false;
  Matrix input{};
  Column input_constant{};
  double input_eps = 0.0;

  [[nodiscard]] Column at(std::span<const double> point) const;
  [[nodiscard]] double size() const { return map_size + constant_size; }
  /// Whether the map is onto, proved by a factorization of its Gram matrix.
  [[nodiscard]] bool has_full_rank() const;
  /// Whether Π'(W x + b) fills a ball of this radius around 0.
  [[nodiscard]] bool fills(double radius) const;
};

/// The effect of the head's rotation on scores; the scale and the score factor are included in the keys.
struct HeadScores {
  HeadSide query{}, key{};
  std::size_t dim = 0;
  std::vector<std::size_t> first{}, second{};  ///< the coordinates of each pair that turns
  std::vector<double> frequencies{};           ///< frequencies of those pairs; empty if unknown
  std::vector<bool> turning{};                 ///< for each coordinate

  [[nodiscard]] std::size_t pairs() const { return first.size(); }
  /// d without its part on coordinates that do not rotate, which shifts all scores alike.
  [[nodiscard]] Column moving_constant() const;
  /// The cosine and the sine of each pair's angle at a distance.
  struct Turn {
    Column cosines{}, sines{};
  };
  [[nodiscard]] Turn turn(double distance) const;
  /// R_t x, with an error of at most `angle_error` times its length.
  [[nodiscard]] Column turned(Column x, const Turn& turn) const;
  /// R_t x, or R_tᵀ x if `backwards`.
  [[nodiscard]] Column turned(Column x, double distance, bool backwards = false) const;
  /// Error of the library's cosines and sines for an angle computed in twice the precision.
  static constexpr double angle_error = 4.0 * 0x1p-53;
  /// The score of a query and the key at this point.
  [[nodiscard]] DoubleDouble score(const Column& query, std::span<const double> key_point,
                                   std::size_t distance) const;
};

/// With every projection, or without; those with it, if known, save products.
[[nodiscard]] HeadScores scores_of(const AttentionHead& head, bool projects,
                                   const HeadScores* projected = nullptr);

/// An upper bound of |L(C u + c)| over the ball, by the multiplier of |u|² <= 1, where C Cᵀ = gram of trace
/// map_size² and m = L c:
///   |L(C u + c)|² <= μ + μ mᵀ(μI − H)⁻¹m,  H = L C Cᵀ Lᵀ, where μI − H is positive definite.
/// Never more than |m| + sqrt(tr H), for every μ.
[[nodiscard]] double largest_length(const Matrix& stacked, const HeadSide& side, const Column& constant,
                                    double multiplier);

/// An upper bound of the spread over all queries and two keys at distance 0: the largest 2 |Kᵀq|.
[[nodiscard]] double spread_at_zero_at_most(const HeadScores& scores, double multiplier);
/// 2 |Kᵀq| for the query of that point.
[[nodiscard]] Enclosure spread_at_zero(const HeadScores& scores, std::span<const double> query_point);

/// Weights on pairs as stated in a result: w, ε, N, F and multipliers.
struct PairWeights {
  std::size_t distances = 0;  ///< 0 for every distance
  std::vector<double> weights{}, turns{};
  std::vector<std::size_t> still{};
  std::vector<double> factor{};
  double query_multiplier = 0.0;
  double key_multiplier = 0.0;
  double spread = 0.0;
};
/// Errors    Format
[[nodiscard]] PairWeights read_weights(const Field& field, const HeadScores& scores);
/// An upper bound of the spread from these weights, 2 max|q'| max|k'|, over all queries or for one query;
/// infinite if they give none.
[[nodiscard]] double spread_by_weights(const HeadScores& scores, const PairWeights& weights,
                                       const Column* query = nullptr);

/// The bound over distances one by one, as stated in a result: |qᵀ(R_t k − z)| <= reach at each distance
/// below `distances`. If κ² or ρ² is 0, the corresponding constant is left out of `reach`, and what it adds
/// to scores is bounded by its length.
struct DistanceBounds {
  std::size_t distances = 0;
  double query_square = 0.0;
  double key_square = 0.0;
  double reach = 0.0;
  std::vector<double> centre{};
  double spread = 0.0;
};
/// An upper bound of the spread at distances below `distances`; infinite if the certificate gives none.
[[nodiscard]] double spread_by_distance(const HeadScores& scores, const DistanceBounds& bounds);

/// An upper bound of the spread of that query over two keys at distances below `distances`.
[[nodiscard]] double widest_context(const HeadScores& scores, const Column& query, std::size_t distances);

/// Two keys of one context, and the weight λ of the context.
struct Context {
  double share = 1.0;
  std::vector<double> high{}, low{};
  std::size_t high_distance = 0;
  std::size_t low_distance = 0;
};
/// A lower bound of the widest context of every query: cᵀg − |Cᵀg| for g = Σ λ (R k_high − R k_low)/Σ λ,
/// where a point v stands for fill v/|v|.
[[nodiscard]] double unavoidable_spread(const HeadScores& scores, const std::vector<Context>& contexts,
                                        double fill);

/// Spreads after a soft cap, where `largest` bounds all scores.
class Cap {
 public:
  Cap(double cap, const HeadScores& scores)
      : cap_(cap), largest_(up(scores.query.size() * scores.key.size())) {}

  [[nodiscard]] double score(double value) const { return cap_ * std::tanh(value / cap_); }
  [[nodiscard]] double upper(double spread) const {
    return cap_ > 0.0 && std::isfinite(spread) ? 2.0 * score(0.5 * spread) : spread;
  }
  [[nodiscard]] double lower(double spread) const {
    if (!(cap_ > 0.0) || !(spread > 0.0)) return spread;
    return score(largest_) - score(largest_ - spread) - elementary * cap_;
  }

 private:
  double cap_;
  double largest_;
};

/// Whether the field equals the text, or is null if the text is empty.
[[nodiscard]] bool is_null_or(const Field& field, const std::string& text);
/// Fields other than bounds: names of the members that differ from the model's head, empty if none does:
/// layer, head, scale, weights, rotation, soft cap, window and so on.
[[nodiscard]] std::string differing_facts(const Field& entry, const AttentionHead& head);
/// How the norms in its certificates differ: kinds, and the eps of the head's own norms.
[[nodiscard]] std::string differing_norms(const Field& certificates, const AttentionHead& head);

}  // namespace normscope::verify
