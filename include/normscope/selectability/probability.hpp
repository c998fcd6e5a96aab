#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/progress.hpp>
#include <normscope/selectability/reach.hpp>

namespace normscope::selectability {

/// Bounds of the largest probability the softmax of the logits gives a token anywhere in the ball.
struct Probability {
  double lower = 0.0;
  double upper = 1.0;
  std::vector<double> point{};    ///< |u| <= 1 that gives it `lower`; empty where the lead's witness does
  std::vector<double> tangent{};  ///< |u| <= 1 where the gradient proves `upper`; empty where the lead does
};

/// What the leads alone say, at no cost: with a lead of at least l somewhere and at most m everywhere,
///   1/(1 + (tokens − 1) e^−l) <= p <= 1/(1 + e^−m).
/// Accuracy  proved (test: Probability.LeadsBoundIt)
[[nodiscard]] Probability probability_from_lead(const TokenReach& reach, std::size_t tokens);

struct ProbabilityOptions {
  double gap = 1e-3;             ///< between the bounds of a log-probability
  std::size_t iterations = 300;  ///< a token; see `convex::largest_log_softmax`
  unsigned threads = 0;
  Progress progress{};
};

/// The largest probability of some tokens, log-probabilities to `gap`; see `convex::largest_log_softmax`.
/// With eps = 0 lower bounds are attained on the sphere; upper ones are those of the ball, which are larger
/// where its inside does better, unless the sphere is two points. Logits beyond 2²⁰⁰ are left at 0 to 1.
/// Errors    Cancelled; Shape
/// Cost      a few to 300 iterations of 4 tokens width operations for each token asked for
[[nodiscard]] std::vector<Probability> largest_probabilities(const Logits& logits,
                                                             std::span<const std::size_t> asked,
                                                             const ProbabilityOptions& options);

/// The bounds that a point and a tangent of each token prove, in turn, without looking for others: of those
/// that `largest_probabilities` found the same bit by bit.
/// Requires  eps > 0; logits up to 2²⁰⁰
/// Errors    Shape
/// Accuracy  (test: Survey.PointsOfProbabilitiesProveTheSameBoundsAgain)
[[nodiscard]] std::vector<Probability> prove_probabilities(const Logits& logits,
                                                           std::span<const std::size_t> asked,
                                                           const std::vector<std::vector<double>>& points,
                                                           unsigned threads);

}  // namespace normscope::selectability
