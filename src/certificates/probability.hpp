#pragma once

#include <cstddef>
#include <vector>

#include "head.hpp"

namespace normscope::certificates {

struct ProbabilityBounds {
  double lower = 0.0;
  double upper = 1.0;
};

/// Bounds of a token's largest probability, if its lead is at least `lower` at some point and at most `upper`
/// everywhere:
///   1/(1 + (tokens − 1) e^−lower) <= p <= 1/(1 + e^−upper).
[[nodiscard]] ProbabilityBounds probability_from_leads(double lower, double upper, std::size_t tokens);

/// A lower bound of the token's probability at the norm's output for the point u of the ball; 0 for a point
/// outside.
[[nodiscard]] double probability_at(const Head& head, std::size_t index, const std::vector<double>& u);

/// The same after the head's soft cap.
[[nodiscard]] double capped_probability_at(const Head& head, std::size_t index, const std::vector<double>& u);

/// An upper bound of its probability over the ball, with positive weights p of different tokens, divided by
/// their sum; 1 with others:
///   log softmax_i <= |Σ p_j (A_i − A_j)| + Σ p_j (a_i − a_j) − H(p),  H(p) = −Σ p_j log p_j.
[[nodiscard]] double probability_by_weights(const Head& head, std::size_t index,
                                            const std::vector<Weight>& weights);

/// The same with the probabilities at the point u.
[[nodiscard]] double probability_by_tangent(const Head& head, std::size_t index,
                                            const std::vector<double>& u);

}  // namespace normscope::certificates
