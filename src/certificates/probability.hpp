#pragma once

#include <cstddef>
#include <vector>

#include "head.hpp"

namespace normscope::certificates {

struct ProbabilityBounds {
  double lower = 0.0;
  double upper = 1.0;
};

/// What a lead of at least `lower` somewhere and at most `upper` anywhere says of a token's largest
/// probability:
///   1/(1 + (tokens − 1) e^−lower) <= p <= 1/(1 + e^−upper).
[[nodiscard]] ProbabilityBounds probability_from_leads(double lower, double upper, std::size_t tokens);

/// At most the token's probability where the norm gives the point u of the ball; 0 for one outside.
[[nodiscard]] double probability_at(const Head& head, std::size_t index, const std::vector<double>& u);

/// The same behind the head's soft cap.
[[nodiscard]] double capped_probability_at(const Head& head, std::size_t index, const std::vector<double>& u);

/// At least its probability anywhere in the ball: with p any probabilities, here those at the point u,
///   log softmax_i <= |Σ p_j (A_i − A_j)| + Σ p_j (a_i − a_j) − H(p),  H(p) = −Σ p_j log p_j.
[[nodiscard]] double probability_at_most(const Head& head, std::size_t index, const std::vector<double>& u);

/// At least its probability at either of the two points that a sphere of one dimension is.
[[nodiscard]] double probability_at_two_points(const Head& head, std::size_t index);

}  // namespace normscope::certificates
