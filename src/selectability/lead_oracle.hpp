#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/view.hpp>
#include <normscope/proof/ball.hpp>
#include <normscope/selectability/logits.hpp>

namespace normscope::selectability {

/// The lead of a token at its own direction.
struct Lead {
  double lower = 0.0;          ///< proved, with the rounding error subtracted
  std::size_t constraint = 0;  ///< next highest there, or equal within float32 rounding
};

/// The rows in float32, divided by a power of two so that the largest is near 1.
struct SinglePrecision {
  std::vector<float> rows{};
  std::vector<float> offsets{};
  int exponent = 0;
  /// Error bound of a float32 logit at a point of the ball, including the rounding of the point.
  double error = 0.0;
};
[[nodiscard]] SinglePrecision single_precision(const Logits& logits);

/// The lead of every token at A_i/|A_i|, from half of A Aᵀ: each tile serves its rows and its columns. Rows
/// too short to have a direction in float32 get no lead. The members of a team share the tiles.
[[nodiscard]] std::vector<Lead> screen(const Logits& logits, const SinglePrecision& single, unsigned threads,
                                       const Progress& progress, const Team& team);

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

/// Some of the tokens, in order, with copies of their rows and offsets in float32.
struct Front {
  Front() = default;
  Front(const Logits& logits, const SinglePrecision& single, std::vector<std::size_t> in_order);

  std::vector<std::size_t> tokens{};
  std::vector<float> rows{};
  std::vector<float> offsets{};
};

/// Fills `constraints`, `leads` and `lower` of each point: one float32 product of all points with all tokens,
/// then float64 for the smallest leads and for all that could be smaller still. Every token counts in
/// `lower`; with a front, only its tokens do.
void evaluate_leads(const LeadOracle& oracle, std::vector<EvaluationPoint>& evaluations, unsigned threads,
                    const Front* front = nullptr);

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

// With eps = 0 a norm only gives points of the sphere, in two dimensions or more (`fold`). A lead there is
// found by moving outward from a point inside the ball: the points at which a token leads form a convex set,
// so it leads on the whole segment to any such point outside.

/// The point of the sphere nearest to `point`: without its mean if the norm centres, divided by its length,
/// and inside the ball up to rounding. Zero if nothing remains.
[[nodiscard]] std::vector<double> on_sphere(const Logits& logits, std::span<const double> point);

/// Bound of |u − point| for the nearest point u of the sphere; infinite unless it is negligible.
[[nodiscard]] double distance_to_sphere(const Logits& logits, std::span<const double> point);

/// A lower bound of the lead over all tokens at the point of the sphere nearest to `point`; −infinity if the
/// distance is more than rounding.
[[nodiscard]] double lead_on_sphere(const LeadOracle& oracle, std::size_t token,
                                    std::span<const double> point, unsigned threads);

/// A point of the sphere at which `token` provably leads, searched from `inside`, a point of the ball where
/// it leads: along several directions while it leads, then along the faces reached. Empty if all paths end
/// inside the ball, which proves nothing.
[[nodiscard]] std::optional<std::vector<double>> lift(const LeadOracle& oracle, std::size_t token,
                                                      std::span<const double> inside, unsigned threads);

}  // namespace normscope::selectability
