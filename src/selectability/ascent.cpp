#include "ascent.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/core/rounding.hpp>

#include "lead_oracle.hpp"
#include "rows.hpp"

namespace normscope::selectability {
namespace {

using proof::Answer;
using proof::PointWeight;

/// Steps after which the token is left to `decide_tokens`, which needs more time for each of its own.
constexpr std::size_t first_steps = 8;
/// More of them, while the upper bound of the lead is above this part of the row's length: a token in the
/// hull of a few others is below it by then, and no number of steps decides it.
constexpr std::size_t most_more_steps = 56;
constexpr double promising = 0.25;
/// A step is a product with all tokens; `decide_tokens` takes about this times width² rows.
constexpr double solver_rows = 20.0;
/// Steps before these, which look at the front alone.
constexpr std::size_t steps_of_front = 2;
/// Tokens that a step takes weight from all others for.
constexpr std::size_t tokens_of_step = 32;
/// Tokens whose logit is below the token's own by no more than this part of its row's length count as in the
/// way, so that a step does not turn to tokens that were just outside of a narrower limit.
constexpr double near = 0.25;
/// How much more weight the highest of them gets than the lowest: e^2.
constexpr double steepness = 2.0;

std::size_t most_steps_of(const Logits& logits) {
  const auto width = static_cast<double>(logits.width);
  const double more = solver_rows * width * width / static_cast<double>(logits.tokens);
  return first_steps + static_cast<std::size_t>(std::min<double>(most_more_steps, more));
}

/// A point of the dual: sum = Σ λ (A_i − A_j), offset = Σ λ (a_i − a_j).
struct AscentSearch {
  Outcome outcome;
  EvaluationPoint evaluation;
  double length = 0.0;
  std::size_t most_steps;
  std::vector<double> sum;
  double offset = 0.0;
  double upper = std::numeric_limits<double>::infinity();  ///< |sum| + offset
  /// Weights of single tokens. What they lack to one is on all tokens alike.
  std::vector<PointWeight> weights{};
  bool open = true;

  AscentSearch(const LeadOracle& oracle, std::size_t token, std::size_t runner_up)
      : outcome{.token = token},
        evaluation{.token = token,
                   .point = own_direction(*oracle.logits, token),
                   .most_constraints = tokens_of_step},
        length(euclidean_norm(oracle.logits->view().row(token))),
        most_steps(most_steps_of(*oracle.logits)),
        sum(oracle.logits->view().row(token).begin(), oracle.logits->view().row(token).end()),
        offset(oracle.logits->offsets[token]) {
    if (runner_up != token) look_within(lower_bound(oracle, token, evaluation.point, runner_up));
  }

  /// Uses the result of an evaluation over the front: the next point, unless none of its tokens is in the
  /// way.
  void advance_over_front(const LeadOracle& oracle) {
    open = !(evaluation.lower > 0.0) && !evaluation.constraints.empty() && step(oracle);
    look_within(evaluation.lower);
  }

  /// Uses the result of the last evaluation: the answer, or the next point.
  void advance(const LeadOracle& oracle) {
    ++outcome.rounds;
    const double lower = proved(oracle);
    if (lower > 0.0) {
      outcome.answer = Answer::yes;
      outcome.lower = lower;
      outcome.witness = std::move(evaluation.point);
      bound(oracle);
      open = false;
    } else {
      const bool goes_on =
          outcome.rounds < first_steps || (outcome.rounds < most_steps && upper > promising * length);
      open = goes_on && !evaluation.constraints.empty() && step(oracle);
      look_within(evaluation.lower);
    }
  }

 private:
  void look_within(double lead) { evaluation.within = std::clamp(-lead, 0.0, near * length); }

  [[nodiscard]] double proved(const LeadOracle& oracle) const {
    if (!oracle.logits->sphere) return evaluation.lower;
    return evaluation.lower -
           2.0 * oracle.logits->scale * distance_to_sphere(*oracle.logits, evaluation.point);
  }

  /// The upper bound that the weights of single tokens prove.
  void bound(const LeadOracle& oracle) {
    if (weights.empty()) return;
    outcome.upper = upper_bound(oracle, outcome.token, weights);
    outcome.weights = std::move(weights);
  }

  /// Moves the weights; false if no direction remains.
  bool step(const LeadOracle& oracle) {
    const std::vector<PointWeight> heavier = towards();
    std::vector<double> change(sum.size());
    double offset_change = 0.0;
    for (const PointWeight& share : heavier) {
      const auto other = static_cast<std::size_t>(share.id);
      const std::span<const double> a = oracle.logits->view().row(outcome.token);
      const std::span<const double> b = oracle.logits->view().row(other);
      for (std::size_t i = 0; i < change.size(); ++i) change[i] += share.weight * (a[i] - b[i]);
      offset_change += share.weight * (oracle.logits->offsets[outcome.token] - oracle.logits->offsets[other]);
    }
    for (std::size_t i = 0; i < change.size(); ++i) change[i] -= sum[i];
    offset_change -= offset;
    const double part = best_part(change, offset_change);
    if (!(part > 0.0)) return false;
    for (std::size_t i = 0; i < change.size(); ++i) sum[i] += part * change[i];
    offset += part * offset_change;
    for (PointWeight& share : weights) share.weight *= 1.0 - part;
    for (const PointWeight& share : heavier) {
      const auto known = std::find_if(weights.begin(), weights.end(),
                                      [&](const PointWeight& one) { return one.id == share.id; });
      if (known != weights.end()) {
        known->weight += part * share.weight;
      } else {
        weights.push_back({share.id, part * share.weight});
      }
    }
    const double size = euclidean_norm(sum);
    upper = size + offset;
    if (!(size > 0.0) || !std::isfinite(size)) return false;
    for (std::size_t i = 0; i < sum.size(); ++i) evaluation.point[i] = sum[i] / size * (1.0 - 0x1p-49);
    return true;
  }

  /// Weights of sum one on the tokens in the way, larger on those with higher logits.
  [[nodiscard]] std::vector<PointWeight> towards() const {
    const std::vector<double>& leads = evaluation.leads;  // in ascending order
    const double range = leads.back() - leads.front();
    std::vector<PointWeight> result;
    double total = 0.0;
    for (std::size_t k = 0; k < leads.size(); ++k) {
      const double weight = range > 0.0 ? std::exp(-steepness * (leads[k] - leads.front()) / range) : 1.0;
      result.push_back({evaluation.constraints[k], weight});
      total += weight;
    }
    for (PointWeight& share : result) share.weight /= total;
    return result;
  }

  /// The part of the change, at most 1, that makes |sum| + offset least.
  [[nodiscard]] double best_part(const std::vector<double>& change, double offset_change) const {
    double square = 0.0;
    double along = 0.0;
    double before = 0.0;
    for (std::size_t i = 0; i < change.size(); ++i) {
      square += change[i] * change[i];
      along += change[i] * sum[i];
      before += sum[i] * sum[i];
    }
    if (!(square > offset_change * offset_change)) return offset_change < 0.0 ? 1.0 : 0.0;
    // The slope (along + t square)/|sum + t change| + offset_change is zero there.
    const double across = std::max(0.0, square * before - along * along);
    const double slope = -offset_change * std::sqrt(across / (square - offset_change * offset_change));
    return std::clamp((slope - along) / square, 0.0, 1.0);
  }
};

}  // namespace

std::vector<Ascent> ascend(const LeadOracle& oracle, const std::vector<std::size_t>& tokens,
                           const std::vector<std::size_t>& runners_up, const Front& front,
                           const ReachOptions& options) {
  std::vector<AscentSearch> searches;
  searches.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) searches.emplace_back(oracle, tokens[i], runners_up[i]);
  const auto run = [&](std::size_t steps, const Front* among, const auto& advance) {
    run_working_sets(
        searches, steps, options.threads,
        [&](std::vector<AscentSearch*>& open) {
          std::vector<EvaluationPoint> evaluations;
          for (AscentSearch* const search : open) evaluations.push_back(std::move(search->evaluation));
          evaluate_leads(oracle, evaluations, options.threads, among);
          for (std::size_t i = 0; i < open.size(); ++i) open[i]->evaluation = std::move(evaluations[i]);
        },
        advance);
  };
  if (!front.tokens.empty()) {
    run(steps_of_front, &front, [&](AscentSearch& search) { search.advance_over_front(oracle); });
    for (AscentSearch& search : searches) search.open = true;
  }
  run(most_steps_of(*oracle.logits), nullptr, [&](AscentSearch& search) { search.advance(oracle); });
  std::vector<Ascent> results;
  for (AscentSearch& search : searches) {
    Ascent& result = results.emplace_back();
    if (search.outcome.answer != Answer::yes) {
      for (const PointWeight& share : search.weights) {
        result.constraints.push_back(static_cast<std::size_t>(share.id));
      }
    }
    result.outcome = std::move(search.outcome);
  }
  return results;
}

}  // namespace normscope::selectability
