#include <normscope/selectability/reach.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include <normscope/core/exact.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/proof/ball.hpp>

#include "lead_oracle.hpp"

namespace normscope::selectability {
namespace {

/// Entries of the logits that the ascent on a sphere may read.
constexpr double sphere_work = 1e9;
/// Rounding of exp and the last operations, with a margin.
constexpr double exp_rounding = 1e-15;

/// The interval without its subnormal ends, whose relative errors have no bound.
Probability normal(double lower, double upper) {
  constexpr double least = std::numeric_limits<double>::min();
  return {.lower = lower >= least ? lower : 0.0, .upper = std::clamp(upper, least, 1.0)};
}

/// Folding may round each of the two logits of the quotient.
Probability probability_of(const Logits& logits, proof::LogSoftmaxMaximum maximum) {
  const double slack = 2.0 * logits.rounding + exp_rounding;
  const Probability ends = normal(std::exp(maximum.lower - slack), std::exp(maximum.upper + slack));
  return {ends.lower, ends.upper, std::move(maximum.point), std::move(maximum.tangent),
          std::move(maximum.weights)};
}

/// Bound of the error of logits that another computes in float64 from the norm's output h.
double rounding_of_others(const Logits& logits) {
  return 2.0 * logits.rounding + 8.0 * unit_roundoff * logits.shifted;
}

/// Part of a point's size up to which its mean costs the rest of it no digits.
constexpr double negligible_mean = 0x1p-10;

/// A norm that centres gives points without a mean. Rows have one from rounding, and with logits of 10⁹ an
/// ascent may end at a point whose mean is much larger than the rest, of which the rounded point then has few
/// digits. The bounds of such points are those of the points without it.
void subtract_means(const Logits& logits, std::span<const std::size_t> asked,
                    std::vector<proof::LogSoftmaxMaximum>& maxima, unsigned threads) {
  if (!logits.centers) return;
  std::vector<std::size_t> places;
  std::vector<std::size_t> tokens;
  std::vector<std::vector<double>> points;
  for (std::size_t i = 0; i < maxima.size(); ++i) {
    if (maxima[i].point.empty()) continue;
    bool has_mean = false;
    std::vector<std::vector<double>> both{maxima[i].point,
                                          maxima[i].tangent.empty() ? maxima[i].point : maxima[i].tangent};
    for (std::vector<double>& point : both) {
      const double middle = mean(point);
      has_mean = has_mean || std::abs(middle) > negligible_mean * euclidean_norm(point);
      for (double& value : point) value -= middle;
    }
    if (!has_mean) continue;
    places.push_back(i);
    tokens.push_back(asked[i]);
    std::move(both.begin(), both.end(), std::back_inserter(points));
  }
  if (places.empty()) return;
  std::vector<proof::LogSoftmaxMaximum> proved = proof::prove_log_softmax(
      logits.view(), logits.offsets, tokens, points, rounding_of_others(logits), threads);
  for (std::size_t i = 0; i < places.size(); ++i) maxima[places[i]] = std::move(proved[i]);
}

/// The value at `point`; its error includes the distance to the nearest point of the sphere.
Bounded on_the_sphere(const Logits& logits, std::size_t token, std::span<const double> point) {
  Bounded found = proof::log_softmax_at(logits.view(), logits.offsets, token, point);
  found.error += 2.0 * logits.scale * distance_to_sphere(logits, point);
  return found;
}

/// Gradient ascent on the sphere, with steps that are halved when the value decreases.
void ascend_on_sphere(const Logits& logits, std::size_t token, std::vector<double>& point, Bounded& best) {
  const MatrixView<const double> rows = logits.view();
  const double size = static_cast<double>(logits.tokens * logits.width);
  const int steps = static_cast<int>(std::clamp(sphere_work / size, 0.0, 60.0));
  double step = 1.0;
  for (int i = 0; i < steps && step > 1e-6; ++i) {
    // The gradient is the token's row minus the mean of all rows weighted by their probabilities.
    std::vector<double> scores;
    for (std::size_t j = 0; j < logits.tokens; ++j) {
      double score = logits.offsets[j];
      for (std::size_t k = 0; k < logits.width; ++k) score += rows.row(j)[k] * point[k];
      scores.push_back(score);
    }
    const double highest = *std::max_element(scores.begin(), scores.end());
    double total = 0.0;
    for (double& score : scores) total += score = std::exp(score - highest);
    std::vector<double> gradient(rows.row(token).begin(), rows.row(token).end());
    for (std::size_t j = 0; j < logits.tokens; ++j) {
      for (std::size_t k = 0; k < logits.width; ++k) gradient[k] -= scores[j] / total * rows.row(j)[k];
    }
    const double length = euclidean_norm(gradient);
    if (!(length > 0.0)) break;
    std::vector<double> ahead(point);
    for (std::size_t k = 0; k < ahead.size(); ++k) ahead[k] += step / length * gradient[k];
    ahead = on_sphere(logits, ahead);
    const Bounded found = on_the_sphere(logits, token, ahead);
    if (found.low() > best.low()) {
      best = found;
      point = std::move(ahead);
    } else {
      step *= 0.5;
    }
  }
}

/// With eps = 0 only the sphere counts: a point inside the ball is replaced by the best known point on the
/// sphere.
void bring_to_sphere(const Logits& logits, std::size_t token, proof::LogSoftmaxMaximum& maximum) {
  std::vector<std::vector<double>> points;
  if (distance_to_sphere(logits, maximum.point) < infinity) points.push_back(maximum.point);
  points.push_back(on_sphere(logits, maximum.point));
  points.push_back(on_sphere(logits, logits.view().row(token)));
  Bounded best{-infinity, 0.0};
  std::vector<double> at;
  for (const std::vector<double>& point : points) {
    if (!(distance_to_sphere(logits, point) < infinity)) continue;
    const Bounded found = on_the_sphere(logits, token, point);
    if (found.low() <= best.low()) continue;
    best = found;
    at = point;
  }
  const bool inside = distance_to_sphere(logits, maximum.point) == infinity;
  if (inside && !at.empty()) ascend_on_sphere(logits, token, at, best);
  maximum.lower = at.empty() ? -infinity : best.low();
  maximum.point = std::move(at);
}

}  // namespace

Probability probability_from_lead(const TokenReach& reach, std::size_t tokens) {
  const double others = static_cast<double>(tokens) - 1.0;
  if (others == 0.0) return {.lower = 1.0, .upper = 1.0};
  const double lower =
      reach.lower > 0.0 ? (1.0 - exp_rounding) / (1.0 + others * std::exp(-reach.lower)) : 0.0;
  return normal(lower, (1.0 + 4.0 * exp_rounding) / (1.0 + std::exp(-reach.upper)));
}

std::vector<Probability> largest_probabilities(const Logits& logits, std::span<const std::size_t> asked,
                                               const ProbabilityOptions& options) {
  std::vector<Probability> results(asked.size());
  std::vector<proof::LogSoftmaxMaximum> maxima =
      proof::largest_log_softmax(logits.view(), logits.offsets, asked,
                                 {.gap = options.gap,
                                  .iterations = options.iterations,
                                  .rounding = rounding_of_others(logits),
                                  .threads = options.threads,
                                  .progress = options.progress});
  subtract_means(logits, asked, maxima, options.threads);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (logits.sphere) bring_to_sphere(logits, asked[i], maxima[i]);
    results[i] = probability_of(logits, std::move(maxima[i]));
  }
  return results;
}

std::vector<Probability> prove_probabilities(const Logits& logits, std::span<const std::size_t> asked,
                                             const std::vector<std::vector<double>>& points,
                                             unsigned threads) {
  std::vector<Probability> results;
  for (proof::LogSoftmaxMaximum& maximum : proof::prove_log_softmax(
           logits.view(), logits.offsets, asked, points, rounding_of_others(logits), threads)) {
    results.push_back(probability_of(logits, std::move(maximum)));
  }
  return results;
}

}  // namespace normscope::selectability
