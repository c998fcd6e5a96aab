#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/selectability/reach.hpp>

namespace normscope::selectability {

/// Bounds of the largest probability that the softmax of the logits gives a token anywhere in the ball.
struct Probability {
  double lower = 0.0;
  double upper = 1.0;
  std::vector<double> point{};    ///< |u| <= 1 that attains `lower`; empty if the witness of the lead does
  std::vector<double> tangent{};  ///< |u| <= 1 whose gradient proves `upper`; empty if the lead proves it
  /// Probabilities that prove `upper` in place of those at `tangent`, where these depend on rounding; see
  /// `proof::LogSoftmaxMaximum`.
  std::vector<proof::PointWeight> weights{};

  /// The tangent point to state as proof of `upper`; empty if `weights` or the lead prove it.
  [[nodiscard]] std::span<const double> proving_tangent() const {
    return weights.empty() ? std::span<const double>(tangent) : std::span<const double>();
  }
};

/// The bounds that follow from the lead alone: with a lead of at least l somewhere and at most m everywhere,
///   1/(1 + (tokens − 1) e^−l) <= p <= 1/(1 + e^−m).
///
/// Accuracy  proved (test: Probability.LeadsBoundProbabilities)
[[nodiscard]] Probability probability_from_lead(const TokenReach& reach, std::size_t tokens);

struct ProbabilityOptions {
  double gap = 1e-3;             ///< gap between the bounds of a log-probability
  std::size_t iterations = 300;  ///< per token; see `proof::largest_log_softmax`
  unsigned threads = 0;
  Progress progress{};
};

/// The largest probability of each token `asked`, log-probabilities to `gap`; see
/// `proof::largest_log_softmax`. With eps = 0 lower bounds are attained on the sphere; upper bounds are
/// those of the ball, larger where a point inside is better.
///
/// Errors    Cancelled; Shape
///
/// Cost      a few to 300 iterations of 4 tokens width operations per token
[[nodiscard]] std::vector<Probability> largest_probabilities(const Logits& logits,
                                                             std::span<const std::size_t> asked,
                                                             const ProbabilityOptions& options);

/// The bounds that given points prove, a point and a tangent of each token in turn, without searching for
/// others: for the points that `largest_probabilities` found, bitwise the same bounds.
///
/// Requires  eps > 0
///
/// Errors    Shape
///
/// Accuracy  (test: Survey.PointsOfProbabilitiesProveTheSameBoundsAgain)
[[nodiscard]] std::vector<Probability> prove_probabilities(const Logits& logits,
                                                           std::span<const std::size_t> asked,
                                                           const std::vector<std::vector<double>>& points,
                                                           unsigned threads);

}  // namespace normscope::selectability
