#pragma once

#include <vector>

#include "rotary_search.hpp"
#include "rotary_weights.hpp"

/// Finds the query whose widest context is narrowest.
namespace normscope::heads {

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
