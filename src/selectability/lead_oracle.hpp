#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/view.hpp>
#include <normscope/proof/ball.hpp>

#include "screen.hpp"

namespace normscope::selectability {

/// The tokens that a token is compared with: logits over a ball in both precisions and, optionally, one more
/// inequality `scale · u_last > 0` with the index `tokens`.
struct LeadOracle {
  const Logits* logits = nullptr;
  const SinglePrecision* single = nullptr;
  bool last_is_positive = false;

  [[nodiscard]] std::size_t rows() const { return logits->tokens + (last_is_positive ? 1 : 0); }
  /// The constraint that `token` leads over `other`: difference·u + returned offset > 0.
  double difference(std::size_t token, std::size_t other, std::span<double> row) const;
};

/// The token's own row divided by its length, or zero: the point where its logit is largest.
[[nodiscard]] std::vector<double> own_direction(const Logits& logits, std::size_t token);

/// A point at which a token's lead is evaluated.
struct EvaluationPoint {
  std::size_t token = 0;
  std::vector<double> point{};
  double within = 0.0;               ///< leads up to this value are reported as constraints
  std::size_t most_constraints = 1;  ///< largest number of constraints to report
  /// Tokens over which the lead may be small, the smallest lead first, at most `most_constraints`.
  std::vector<std::size_t> constraints{};
  std::vector<double> leads{};  ///< proved lower bounds of the leads over the constraints
  double lower = 0.0;           ///< proved lower bound of the lead over all tokens
};

/// Fills `constraints`, `leads` and `lower` of each point: one float32 product of all points with all tokens,
/// then float64 for the smallest leads and for all that could be smaller still. Every token counts in
/// `lower`.
void evaluate_leads(const LeadOracle& oracle, std::vector<EvaluationPoint>& evaluations, unsigned threads);

/// A proved upper bound on the lead of `token` over the ball, from weights on others.
[[nodiscard]] double upper_bound(const LeadOracle& oracle, std::size_t token,
                                 const std::vector<proof::PointWeight>& weights);
/// The largest upper bound from these weights that still means that the token never leads: `relative` times
/// the size of the rows with positive weights, and at least their rounding error. Other rows do not count,
/// however large they are.
[[nodiscard]] double tie(const LeadOracle& oracle, std::size_t token,
                         const std::vector<proof::PointWeight>& weights, double relative);
/// A proved lower bound on the lead of `token` over `other` at `point`, without the rounding of the logits
/// themselves.
///
/// Requires  a point of the ball: see `is_in_ball`
[[nodiscard]] bool is_in_ball(std::span<const double> point);
[[nodiscard]] double lower_bound(const LeadOracle& oracle, std::size_t token, std::span<const double> point,
                                 std::size_t other);

/// The cone over the logits, with one more column: a token is the argmax of A u/t + a₀ for some u and t > 0
/// exactly if it is the argmax of (A, a₀)(u, t). Offsets are scaled to the length of the rows, which only
/// rescales t.
[[nodiscard]] Logits cone(const Logits& logits);

/// The power of two by which offsets are scaled.
[[nodiscard]] int offset_exponent(const Logits& logits);

/// Whether offsets differ. If they do not, the bound on the norm's output changes no answer.
[[nodiscard]] bool has_offsets(const Logits& logits);

}  // namespace normscope::selectability
