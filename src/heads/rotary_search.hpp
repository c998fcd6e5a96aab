#pragma once

#include <optional>

#include "rotary_scores.hpp"

/// Searches for contexts in which a head's attention is sharp.
namespace normscope::heads {

/// Largest number of distances that are evaluated one by one; of more, that many spread over all.
inline constexpr std::size_t most_swept = 16384;

/// A query, by its point u, and two keys of one context: `high` and `low` at their distances.
struct RotaryContext {
  Eigen::VectorXd query_point{};  ///< u, |u| <= 1
  Eigen::VectorXd high{};         ///< v, |v| <= 1
  Eigen::VectorXd low{};
  std::size_t high_distance = 0;
  std::size_t low_distance = 0;
  double spread = 0.0;  ///< difference of the two scores, to rounding
};

/// The key with the highest (sign 1) or lowest (−1) score at distance t.
[[nodiscard]] Eigen::VectorXd best_key(const RotaryScores& scores, const Eigen::VectorXd& query,
                                       std::size_t t, double sign);

/// The g for which the spread of the context is qᵀ g, as a function of the query q.
[[nodiscard]] Eigen::VectorXd spread_gradient(const RotaryScores& scores, const RotaryContext& context);

/// The two different distances of `sweep` at which the scores under the query of u differ most, with their
/// keys.
///
/// Requires  two distances or more
[[nodiscard]] RotaryContext widest_context(const RotaryScores& scores, const Sweep& sweep,
                                           const Eigen::VectorXd& query_point);

/// Scores of the keys at one distance: they lie in middle ± spread/2.
struct Sharpness {
  double spread = 0.0;
  double middle = 0.0;
};

/// The largest difference of the scores of two keys at distance t, after some steps of a power iteration from
/// `u`, which is updated.
[[nodiscard]] Sharpness sharpness_at(const RotaryScores& scores, std::size_t t, Eigen::VectorXd& u);

/// The sharpest context found by a search over distances in [1, scores.distances), by alternating
/// maximization over u, keys and distances from several starts. The two keys are at different distances,
/// neither of them 0. Empty if there are fewer than two distances, or frequencies are unknown.
///
/// Cost      about 20 sweeps of 512 distances and 4 of all, or of 16384 if there are more
[[nodiscard]] std::optional<RotaryContext> sharpest_context(const RotaryScores& scores);

}  // namespace normscope::heads
