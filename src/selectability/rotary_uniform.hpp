#pragma once

#include <vector>

#include "rotary_search.hpp"
#include "rotary_weights.hpp"

/// The query under which the widest context is narrowest.
namespace normscope::selectability {

/// The least over u of the largest spread over contexts, from both sides.
struct RotaryUniform {
  Eigen::VectorXd point{};           ///< u that attains `upper`
  double upper = 0.0;                ///< no context is wider under that query, at the distances it is said of
  double anywhere = 0.0;             ///< the same at every distance, whatever the frequencies
  Eigen::VectorXd anywhere_point{};  ///< u that attains `anywhere`, as these weights prove
  WeightProof anywhere_proof{};
  double lower = 0.0;  ///< every query has a context at least this wide
  /// Contexts, and weights that sum to 1, that prove `lower`: with g = Σ λ g_i, where context i has the
  /// spread qᵀ g_i, every query's widest is at least min over u of (C u + c)ᵀ g = cᵀ g − |Cᵀ g|.
  std::vector<RotaryContext> contexts{};
  std::vector<double> shares{};  ///< λ
};

/// Formula   min over u of a maximum of functions linear in u, one for each context, and its dual: a concave
///           function of λ that Frank–Wolfe steps raise, each adding the widest context of the query which
///           the dual, smoothed less and less, answers with
/// Cost      60 sweeps of 256 to 500 distances, and up to 11 of all, or of 16384 where there are more
[[nodiscard]] RotaryUniform most_uniform(const RotaryScores& scores, const RotaryWeights& weights);

}  // namespace normscope::selectability
