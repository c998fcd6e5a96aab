#pragma once

#include <optional>

#include "rotary_scores.hpp"

/// Contexts in which a head is sharp, by search.
namespace normscope::selectability {

/// A query and two keys of one context: scores of keys `high` and `low` at their distances under the query of
/// u.
struct RotaryContext {
  Eigen::VectorXd query_point{};  ///< u, |u| <= 1
  Eigen::VectorXd high{};         ///< v, |v| <= 1
  Eigen::VectorXd low{};
  std::size_t high_distance = 0;
  std::size_t low_distance = 0;
  double spread = 0.0;  ///< difference of the two scores, to rounding
};

/// The key of the highest (sign 1) or lowest (−1) score at distance t.
[[nodiscard]] Eigen::VectorXd best_key(const RotaryScores& scores, const Eigen::VectorXd& query,
                                       std::size_t t, double sign);

/// g of the spread as a function of the query: scores(high) − scores(low) = qᵀ g.
[[nodiscard]] Eigen::VectorXd spread_gradient(const RotaryScores& scores, const RotaryContext& context);

/// The two distances of `sweep`, not the same, at which keys differ most under the query of u, with the keys.
/// Requires  two distances or more
[[nodiscard]] RotaryContext widest_context(const RotaryScores& scores, const Sweep& sweep,
                                           const Eigen::VectorXd& query_point);

/// Scores of keys at one distance: they lie in middle ± spread/2.
struct Sharpness {
  double spread = 0.0;
  double middle = 0.0;
};

/// How far two keys at distance t are told apart under the best query that some steps of a power iteration
/// from `u` lead to, which becomes it.
[[nodiscard]] Sharpness sharpness_at(const RotaryScores& scores, std::size_t t, Eigen::VectorXd& u);

/// The sharpest context that a search of distances in [1, scores.distances) finds: u, keys and distances in
/// turn are the best for the others, from several starts. Two keys never stand at one distance, and a query's
/// own key is no other. None where there are not two distances, or frequencies are not known. Cost      about
/// 20 sweeps of 512 distances and 4 of all, or of 16384 where there are more
[[nodiscard]] std::optional<RotaryContext> sharpest_context(const RotaryScores& scores);

}  // namespace normscope::selectability
