#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/convex/ball.hpp>
#include <normscope/core/view.hpp>

#include "screen.hpp"

namespace normscope::selectability {

/// Tokens to be beaten: logits over a ball, in both precisions, and perhaps one more inequality
/// `scale · u_last > 0`, which has the id `tokens`.
struct Field {
  const Logits* logits = nullptr;
  const SinglePrecision* single = nullptr;
  bool last_is_positive = false;

  [[nodiscard]] std::size_t rows() const { return logits->tokens + (last_is_positive ? 1 : 0); }
  /// The inequality that `token` beats `other`: difference·u + returned offset > 0.
  double difference(std::size_t token, std::size_t other, std::span<double> row) const;
};

/// The token's own row over its length, or zero: where it is highest, and mostly higher than all others.
[[nodiscard]] std::vector<double> own_direction(const Logits& logits, std::size_t token);

/// Where a token stands at a point.
struct Standing {
  std::size_t token = 0;
  std::vector<double> point{};
  double within = 0.0;          ///< leads up to this count as low
  std::size_t most_rivals = 1;  ///< that are asked for
  /// Tokens over which the lead may be low, the lowest first, as many as asked for.
  std::vector<std::size_t> rivals{};
  std::vector<double> leads{};  ///< over the rivals: lower bounds, proved
  double lower = 0.0;           ///< of the lead over everybody, proved
};

/// Fills rivals, leads and lower of each standing: one product in float32 of all points with all tokens; in
/// float64 as many of the lowest leads as rivals are asked for, and those that could be lower still. Every
/// token counts in `lower`.
void look(const Field& field, std::vector<Standing>& standings, unsigned threads);

/// A proved upper bound on the lead of `token` over the ball, from weights on others.
[[nodiscard]] double upper_bound(const Field& field, std::size_t token,
                                 const std::vector<convex::Share>& weights);
/// What an upper bound from these weights may be and still say that the token never leads: `relative` of the
/// size of the rows that they are on, and no less than rounding of these may feign. Other rows, however
/// large, do not count.
[[nodiscard]] double tie(const Field& field, std::size_t token, const std::vector<convex::Share>& weights,
                         double relative);
/// A proved lower bound on the lead of `token` over `other` at `point`, rounding in the logits left out.
/// Requires  a point of the ball: see `is_in_ball`
[[nodiscard]] bool is_in_ball(std::span<const double> point);
[[nodiscard]] double lower_bound(const Field& field, std::size_t token, std::span<const double> point,
                                 std::size_t other);

}  // namespace normscope::selectability
