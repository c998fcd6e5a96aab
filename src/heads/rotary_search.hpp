#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "rotary_scores.hpp"
#include "rotary_weights.hpp"

/// Searches for contexts in which a head's attention is sharp.
namespace normscope::heads {

/// Largest number of distances that are evaluated one by one; of more, that many spread over all.
inline constexpr std::size_t most_swept = 16384;
/// Distances that improve a start of a search, before `most_swept` do.
inline constexpr std::size_t explored = 512;
/// Distances that a search covers if the context length is unbounded.
inline constexpr std::size_t searched = 8192;

/// Distances between a query and the keys that it sees; 0 for no limit, as of `context` and `window`.
inline std::size_t distances_within(std::size_t context, std::size_t window) {
  if (context == 0 || window == 0) return std::max(context, window);
  return std::min(context, window);
}

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

/// The largest difference of the scores of two keys at each of some distances, to the accuracy of a few
/// iterations, with a query that attains it: scores there lie in middle ± spread/2.
struct Sharpness {
  std::vector<std::size_t> distances;
  Eigen::VectorXd spreads;
  Eigen::VectorXd middles;
  Eigen::MatrixXd points;  ///< u of each distance, by columns
};
[[nodiscard]] Sharpness sharpness_at(const RotaryScores& scores, std::vector<std::size_t> distances,
                                     const Turns& turns);

/// The sharpest context found by a search over distances in [1, scores.distances), by alternating
/// maximization over u, keys and distances from several starts: the sharpest of `found`, those of the
/// `hardest` distances, and random ones. The two keys are at different distances, neither of them 0. Empty if
/// there are fewer than two distances, or frequencies are unknown.
///
/// Cost      about 30 sweeps of 512 distances and 6 of all, or of 16384 if there are more
[[nodiscard]] std::optional<RotaryContext> sharpest_context(const RotaryScores& scores,
                                                            const Sharpness& found,
                                                            const std::vector<std::size_t>& hardest);

// Finds the query whose widest context is narrowest.

/// Bounds of the minimum over u of the largest spread over contexts.
struct RotaryUniform {
  Eigen::VectorXd point{};           ///< u that attains `upper`
  double upper = 0.0;                ///< no context is wider under that query, over the stated distances
  double anywhere = 0.0;             ///< the same over all distances, whatever the frequencies
  Eigen::VectorXd anywhere_point{};  ///< u that attains `anywhere`, as proved by these weights
  WeightProof anywhere_proof{};
  /// How much `upper` and `anywhere` grow per unit of length by which their points move.
  double upper_sensitivity = 0.0;
  double anywhere_sensitivity = 0.0;
  double lower = 0.0;  ///< every query has a context at least this wide
  /// Contexts with weights that sum to 1, which prove `lower`: context i has the spread qᵀ g_i, and with g =
  /// Σ λ_i g_i the widest context of every query is at least min over u of (C u + c)ᵀ g = cᵀ g − |Cᵀ g|.
  std::vector<RotaryContext> contexts{};
  std::vector<double> shares{};  ///< λ
};

/// Formula   The minimum over u of a maximum of linear functions, one for each context, and its dual, a
///           concave function of λ. Frank–Wolfe steps increase the dual: each adds the widest context of the
///           query that attains the smoothed dual, with decreasing smoothing.
///
/// Cost      60 sweeps of 256 to 500 distances, and up to 11 of all, or of 16384 where there are more
[[nodiscard]] RotaryUniform most_uniform(const RotaryScores& scores, const RotaryWeights& weights);

}  // namespace normscope::heads
