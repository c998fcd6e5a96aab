#include "probability.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/numeric/sum.hpp>

namespace normscope::certificates {
namespace {

/// Relative rounding error of std::exp and std::log, with a margin.
constexpr double elementary = 8.0 * unit;

}  // namespace

ProbabilityBounds probability_from_leads(double lower, double upper, std::size_t tokens) {
  const double others = static_cast<double>(tokens) - 1.0;
  if (others == 0.0) return {1.0, 1.0};
  ProbabilityBounds result;
  if (lower > 0.0) result.lower = (1.0 - 2.0 * elementary) / (1.0 + others * std::exp(-lower));
  result.upper = std::min(1.0, (1.0 + 2.0 * elementary) / (1.0 + std::exp(-upper)));
  return result;
}

double probability_at(const Head& head, std::size_t index, const std::vector<double>& u) {
  if (!in_ball(u)) return 0.0;
  // p = 1 / Σ exp(logit_j − logit_i)
  CompensatedSum sum;
  for (const Bounded& logit : head.logits_from(index, u, Head::Where::norm))
    sum.add(std::exp(head.from_units(logit.high())));
  const double result = (1.0 - 2.0 * elementary) / sum.value();
  return std::isnan(result) ? 0.0 : result;
}

double capped_probability_at(const Head& head, std::size_t index, const std::vector<double>& u) {
  if (!in_ball(u)) return 0.0;
  const double cap = head.soft_cap();
  const auto capped = [cap](double logit) { return cap * std::tanh(logit / cap); };
  const std::vector<Bounded> logits = head.logits_at(u);
  const double own = capped(logits[index].low());
  CompensatedSum sum;
  sum.add(1.0);
  for (std::size_t j = 0; j < logits.size(); ++j) {
    // tanh is increasing: the upper bounds of the other logits, the lower bound of the token's own, and the
    // rounding of both.
    if (j != index) sum.add(std::exp(capped(logits[j].high()) - own + 4.0 * elementary * cap));
  }
  const double result = (1.0 - 2.0 * elementary) / sum.value();
  return std::isnan(result) ? 0.0 : result;
}

double probability_by_weights(const Head& head, std::size_t index, const std::vector<Weight>& weights) {
  // Two weights of one token would count its entropy twice.
  std::vector<bool> weighted(head.tokens());
  CompensatedSum total;
  CompensatedSum entropy;  // −Σ w log w
  double size = 0.0;
  for (const Weight& weight : weights) {
    if (!(weight.weight > 0.0) || weighted[weight.index]) return 1.0;
    weighted[weight.index] = true;
    total.add(weight.weight);
    const double term = -weight.weight * std::log(weight.weight);
    entropy.add(term);
    size += weight.weight + std::abs(term);
  }
  const double sum = total.value();
  if (!(sum > 0.0) || !std::isfinite(sum)) return 1.0;
  const Head::Difference difference = head.difference(index, weights);
  const double length = head.from_units(difference.length);
  const double offset = head.from_units(difference.offset.high());
  // With p = w/S: H(p) = log S − (Σ w log w)/S.
  const double least_entropy = std::log(sum) + entropy.value() / sum - 4.0 * elementary * (1.0 + size / sum);
  const double bound =
      (length + offset) / sum - least_entropy + 16.0 * unit * (length + std::abs(offset)) / sum;
  const double result = std::exp(bound) * (1.0 + elementary);
  return std::isnan(result) ? 1.0 : std::min(1.0, result);
}

double probability_by_tangent(const Head& head, std::size_t index, const std::vector<double>& u) {
  std::vector<Bounded> logits = head.logits_from(index, u, Head::Where::point);
  for (Bounded& logit : logits) logit.value = head.from_units(logit.value);
  double highest = 0.0;
  for (const Bounded& logit : logits) highest = std::max(highest, logit.value);
  // The bound holds for any weights, so the rounding of these does not matter. A weight on the token itself
  // does not change the differences.
  std::vector<Weight> weights;
  for (std::size_t j = 0; j < logits.size(); ++j) {
    const double weight = std::exp(logits[j].value - highest);
    if (weight > 0.0) weights.push_back({j, weight});
  }
  return probability_by_weights(head, index, weights);
}

}  // namespace normscope::certificates
