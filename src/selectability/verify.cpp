#include <normscope/selectability/select.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/proof/separate.hpp>
#include <normscope/selectability/reach.hpp>

#include "key_set.hpp"
#include "lead_oracle.hpp"
#include "rows.hpp"

namespace normscope::selectability {
namespace {

constexpr double u = 0x1p-53;

/// Whether the integers prove the answer.
bool verify_exactly(MatrixView<const double> keys, const Selection& selection, std::size_t index) {
  const auto found = std::find_if(selection.exact.begin(), selection.exact.end(),
                                  [index](const ExactVerdict& verdict) { return verdict.key == index; });
  if (found == selection.exact.end() || keys.rows() < 2) return false;
  const Selectability proved = found->separation.answer == proof::Answer::yes  ? Selectability::selectable
                               : found->separation.answer == proof::Answer::no ? Selectability::unselectable
                                                                               : Selectability::undecided;
  const Verdict& verdict = selection.keys[index];
  if (proved != verdict.answer) return false;
  const bool bounded =
      proved == Selectability::selectable
          ? verdict.margin == 0.0 ||
                verdict.margin <= verified_margin(keys, index, verdict.query) * (1.0 + 64.0 * u)
          : verified_residual(keys, index, verdict.weights) <= verdict.residual * (1.0 + 64.0 * u);
  if (!bounded) return false;
  const MatrixView<const double> key(keys.row(index).data(), 1, keys.width());
  const std::size_t self[] = {index};
  return proof::verify(key, keys, found->separation, self);
}

using proof::Answer;

/// Points checked in one product.
constexpr std::size_t tokens_per_task = 64;

/// The logits, their float32 copy, and the cone over them, constructed once for all tokens.
class Verifier {
 public:
  Verifier(const Logits& logits, double tolerance)
      : logits_(logits), tolerance_(tolerance), single_(single_precision(logits)) {
    // Without offsets the ball decides this too.
    if (!has_offsets(logits)) return;
    cone_ = cone(logits);
    cone_single_ = single_precision(cone_);
  }

  /// Checks everything except the point at which a reachable token leads.
  [[nodiscard]] bool weights_hold(std::size_t token, const TokenReach& reach) const {
    const LeadOracle oracle{.logits = &logits_, .single = &single_};
    const double upper = upper_bound(oracle, token, upper_weights(reach));
    if (!(reach.upper >= upper)) return false;
    if (reach.answer == Answer::yes) return reach.unbounded == Answer::yes;
    if (reach.answer == Answer::no && !(upper <= tie(oracle, token, upper_weights(reach), tolerance_))) {
      return false;
    }
    if (reach.unbounded == Answer::yes) return leads_somewhere(token, reach.unbounded_witness);
    if (reach.unbounded == Answer::undecided) return true;
    if (cone_.tokens == 0) return reach.answer == Answer::no;
    const LeadOracle all{.logits = &cone_, .single = &cone_single_, .last_is_positive = true};
    return upper_bound(all, token, reach.unbounded_weights) <=
           tie(all, token, reach.unbounded_weights, tolerance_);
  }

  /// For each reachable token, whether it leads by the stated margin at its point.
  [[nodiscard]] std::vector<bool> points_hold(const std::vector<std::size_t>& asked,
                                              const std::vector<TokenReach>& tokens, unsigned threads) const {
    const LeadOracle oracle{.logits = &logits_, .single = &single_};
    std::vector<EvaluationPoint> evaluations;
    std::vector<bool> hold(asked.size(), false);
    std::vector<std::size_t> at;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      const TokenReach& reach = tokens[asked[i]];
      std::vector<double> point = witness(logits_, asked[i], reach);
      if (!(reach.lower > 0.0) || point.size() != logits_.width || !is_in_ball(point)) continue;
      // Tokens that the lead is not smaller for by more than rounding are evaluated.
      evaluations.push_back(
          {.token = asked[i], .point = std::move(point), .within = reach.lower + 2.0 * logits_.rounding});
      at.push_back(i);
    }
    if (!evaluations.empty()) evaluate_leads(oracle, evaluations, threads);
    for (std::size_t k = 0; k < at.size(); ++k) {
      const double lower = tokens[asked[at[k]]].lower;
      double found = evaluations[k].lower;
      // The output of the norm is the nearest point of the sphere.
      if (logits_.sphere) found -= 2.0 * logits_.scale * distance_to_sphere(logits_, evaluations[k].point);
      hold[at[k]] = found > 0.0 && found >= lower - 1e-13 * logits_.scale;
    }
    return hold;
  }

 private:
  /// Whether the token leads strictly at that point of the cone.
  [[nodiscard]] bool leads_somewhere(std::size_t token, const std::vector<double>& point) const {
    if (cone_.tokens == 0 || point.size() != cone_.width || !is_in_ball(point)) return false;
    const LeadOracle all{.logits = &cone_, .single = &cone_single_, .last_is_positive = true};
    std::vector<EvaluationPoint> evaluation = {{.token = token, .point = point}};
    evaluate_leads(all, evaluation, 1);
    return evaluation[0].lower > 0.0;
  }

  const Logits& logits_;
  double tolerance_;
  SinglePrecision single_;
  Logits cone_{};
  SinglePrecision cone_single_{};
};

}  // namespace

double verified_margin(MatrixView<const double> keys, std::size_t index, std::span<const double> query) {
  if (query.size() != keys.width()) return -infinity;
  const double length = euclidean_norm(query);
  if (!(length > 0.0) || !std::isfinite(length)) return -infinity;
  double least = infinity;
  for (std::size_t row = 0; row < keys.rows(); ++row) {
    if (row == index) continue;
    const double quick = quick_difference_dot(query, keys.row(index), keys.row(row)).low();
    if (quick >= least) continue;
    const double low = difference_dot(query, keys.row(index), keys.row(row)).low();
    least = std::isnan(low) ? -infinity : std::min(least, low);
  }
  if (least == infinity) return infinity;
  const double margin = least / length;
  return margin - 16.0 * u * std::abs(margin);
}

std::vector<double> verified_distances(MatrixView<const double> keys, std::size_t index,
                                       std::span<const proof::PointWeight> weights) {
  const double total = total_weight(weights, keys.rows(), index);
  if (total == 0.0) return {};
  std::vector<double> distances(keys.width());
  for (std::size_t i = 0; i < distances.size(); ++i) {
    ExactSum sum;
    for (const proof::PointWeight& share : weights) {
      sum.add(two_sum(keys.row(share.id)[i], -keys.row(index)[i]), share.weight);
    }
    const Bounded entry = sum.result();
    const double distance = (std::abs(entry.value) + entry.error) / total * (1.0 + 8.0 * u);
    distances[i] = std::isnan(distance) ? infinity : distance;
  }
  return distances;
}

double verified_residual(MatrixView<const double> keys, std::size_t index,
                         std::span<const proof::PointWeight> weights) {
  const std::vector<double> distances = verified_distances(keys, index, weights);
  if (distances.empty()) return infinity;
  return euclidean_norm(distances) * (1.0 + 16.0 * u);
}

bool verify(MatrixView<const double> keys, const Selection& selection, std::size_t index) {
  const Verdict& verdict = selection.keys[index];
  if (verdict.proof == Proof::exact) return verify_exactly(keys, selection, index);
  switch (verdict.answer) {
    case Selectability::selectable: {
      if (keys.rows() == 1) return true;
      const double margin = verified_margin(keys, index, selection.query(keys, index));
      return margin > 0.0 && verdict.margin > 0.0 && verdict.margin <= margin * (1.0 + 64.0 * u);
    }
    case Selectability::unselectable: {
      const double residual = verified_residual(keys, index, verdict.weights);
      return residual <= verdict.residual * (1.0 + 64.0 * u) &&
             residual <= selection.tolerance * selection.scale &&
             are_none(verified_distances(keys, index, verdict.weights), selection.extents,
                      selection.tolerance);
    }
    case Selectability::undecided: return true;
  }
  return false;
}

bool verify(MatrixView<const double> keys, const Selection& selection, unsigned threads) {
  if (selection.keys.size() != keys.rows()) return false;
  std::atomic<bool> sound{true};
  parallel_for(keys.rows(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end && sound; ++i) {
      if (!verify(keys, selection, i)) sound = false;
    }
  });
  return sound;
}

std::vector<double> witness(const Logits& logits, std::size_t token, const TokenReach& reach) {
  return reach.witness.empty() ? own_direction(logits, token) : reach.witness;
}

std::vector<proof::PointWeight> upper_weights(const TokenReach& reach) {
  if (!reach.weights.empty() || !std::isfinite(reach.upper)) return reach.weights;
  return {{reach.runner_up, 1.0}};
}

WithoutBall without_ball(const Logits& logits, double tolerance) {
  const int exponent = offset_exponent(logits);
  // The sizes of the cone over the logits, without constructing it.
  Logits sizes{.rounding = std::scalbn(logits.rounding, std::max(0, exponent))};
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    std::vector<double> row(logits.view().row(token).begin(), logits.view().row(token).end());
    row.push_back(std::scalbn(logits.offsets[token], exponent));
    sizes.scale = std::max(sizes.scale, euclidean_norm(row));
  }
  return {std::scalbn(1.0, exponent), sizes.tolerance(tolerance)};
}

std::vector<std::size_t> unproved(const Logits& logits, const std::vector<TokenReach>& tokens,
                                  const std::vector<std::size_t>& asked, const ReachOptions& options) {
  const bool alone = logits.tokens == 1;
  const Verifier verifier(logits, options.tolerance);
  std::vector<char> holds(asked.size(), 0);
  parallel_for(asked.size(), 1, options.threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const TokenReach& reach = tokens[asked[i]];
      holds[i] = alone ? reach.answer == Answer::yes && reach.unbounded == Answer::yes
                       : verifier.weights_hold(asked[i], reach);
    }
  });
  std::vector<std::size_t> leading;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (!alone && holds[i] && tokens[asked[i]].answer == Answer::yes) leading.push_back(i);
  }
  for (std::size_t begin = 0; begin < leading.size(); begin += tokens_per_task) {
    options.progress("proof", begin, leading.size());
    std::vector<std::size_t> some;
    const std::size_t end = std::min(leading.size(), begin + tokens_per_task);
    for (std::size_t k = begin; k < end; ++k) some.push_back(asked[leading[k]]);
    const std::vector<bool> points = verifier.points_hold(some, tokens, options.threads);
    for (std::size_t k = begin; k < end; ++k) holds[leading[k]] = points[k - begin] ? 1 : 0;
  }
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (holds[i] == 0) result.push_back(asked[i]);
  }
  return result;
}

bool verify(const Logits& logits, std::size_t token, const TokenReach& reach, double tolerance) {
  std::vector<TokenReach> tokens(token + 1);
  tokens[token] = reach;
  return unproved(logits, tokens, {token}, {.threads = 1, .tolerance = tolerance}).empty();
}

}  // namespace normscope::selectability
