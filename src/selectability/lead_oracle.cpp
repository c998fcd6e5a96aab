#include "lead_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <normscope/core/exact.hpp>
#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>

#include "float_scores.hpp"
#include "rows.hpp"

namespace normscope::selectability {
namespace {

/// A lead larger than this many times its error is not recomputed in twice the precision.
constexpr double enough_digits = 0x1p20;

struct Candidate {
  float score = 0.0F;
  std::size_t token = 0;

  bool operator<(const Candidate& other) const {
    return score != other.score ? score > other.score : token < other.token;
  }
};

double own_score(const LeadOracle& oracle, const EvaluationPoint& evaluation) {
  const std::span<const double> row = oracle.logits->view().row(evaluation.token);
  CompensatedSum total;
  total.add(oracle.logits->offsets[evaluation.token]);
  for (std::size_t i = 0; i < row.size(); ++i) total.add(row[i] * evaluation.point[i]);
  return total.value();
}

/// A block of rows.
struct TokenBlock {
  const float* offsets;
  std::size_t first;
  std::size_t count;
  const std::size_t* tokens;  ///< of the rows of a front
};

/// The rows of all tokens, or of a front.
struct TokenRows {
  const float* rows;
  const float* offsets;
  std::size_t count;
  std::size_t of_width;
  const std::size_t* tokens = nullptr;

  [[nodiscard]] std::size_t size() const { return count; }
  [[nodiscard]] std::size_t width() const { return of_width; }
  [[nodiscard]] const float* values(std::size_t row) const { return rows + row * of_width; }
  [[nodiscard]] TokenBlock block_at(std::size_t first, std::size_t size) const {
    return {offsets + first, first, size, tokens == nullptr ? nullptr : tokens + first};
  }
};

/// The tokens whose score at a point is at least the threshold.
struct PointState {
  std::size_t own = 0;  ///< the row of the token itself
  float threshold = lowest;
  std::vector<Candidate> candidates{};
  float best = lowest;  ///< the highest score of all other rows

  void meet(float* scores, const TokenBlock& met) {
    for (std::size_t i = 0; i < met.count; ++i) scores[i] += met.offsets[i];
    if (own >= met.first && own - met.first < met.count) scores[own - met.first] = lowest;
    visit_high(
        scores, met.count, [this] { return threshold; },
        [this](float highest) { best = std::max(best, highest); },
        [&](std::size_t i) {
          best = std::max(best, scores[i]);
          if (scores[i] >= threshold && met.first + i != own) {
            candidates.push_back({scores[i], met.tokens == nullptr ? met.first + i : met.tokens[i]});
          }
        });
  }

  void merge(PointState&& other) {
    best = std::max(best, other.best);
    candidates.insert(candidates.end(), other.candidates.begin(), other.candidates.end());
  }
};

/// Selects the constraints and computes the lead from the candidates; no other token leads by less than
/// `floor`.
void settle(const LeadOracle& oracle, EvaluationPoint& evaluation, double own,
            std::vector<Candidate> candidates, double floor) {
  evaluation.lower = floor;
  std::vector<std::pair<double, std::size_t>> close;
  const auto meet = [&](std::size_t other) {
    const double lead = lower_bound(oracle, evaluation.token, evaluation.point, other);
    evaluation.lower = std::min(evaluation.lower, lead);
    close.emplace_back(lead, other);
  };
  if (oracle.last_is_positive) meet(oracle.logits->tokens);
  // A max-heap by score: usually only a few of many candidates are needed.
  const auto later = [](const Candidate& a, const Candidate& b) { return b < a; };
  std::make_heap(candidates.begin(), candidates.end(), later);
  while (!candidates.empty()) {
    const Candidate& next = candidates.front();
    const double least =
        own - std::scalbn(static_cast<double>(next.score), oracle.single->exponent) - oracle.single->error;
    if (close.size() >= evaluation.most_constraints && least >= evaluation.lower) break;
    meet(next.token);
    std::pop_heap(candidates.begin(), candidates.end(), later);
    candidates.pop_back();
  }
  std::sort(close.begin(), close.end());
  if (close.size() > evaluation.most_constraints) close.resize(evaluation.most_constraints);
  evaluation.constraints.clear();
  evaluation.leads.clear();
  for (const auto& [lead, token] : close) {
    evaluation.constraints.push_back(token);
    evaluation.leads.push_back(lead);
  }
}

}  // namespace

double LeadOracle::difference(std::size_t token, std::size_t other, std::span<double> row) const {
  if (other == logits->tokens) {
    std::fill(row.begin(), row.end(), 0.0);
    row.back() = logits->scale;
    return 0.0;
  }
  const std::span<const double> a = logits->view().row(token);
  const std::span<const double> b = logits->view().row(other);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = a[i] - b[i];
  return logits->offsets[token] - logits->offsets[other];
}

std::vector<double> own_direction(const Logits& logits, std::size_t token) {
  const std::span<const double> row = logits.view().row(token);
  std::vector<double> point(row.begin(), row.end());
  const double length = euclidean_norm(row);
  for (double& value : point) value = length > 0.0 ? value / length * (1.0 - 0x1p-49) : 0.0;
  return point;
}

Front::Front(const Logits& logits, const SinglePrecision& single, std::vector<std::size_t> in_order)
    : tokens(std::move(in_order)) {
  for (const std::size_t token : tokens) {
    const auto row = single.rows.begin() + static_cast<std::ptrdiff_t>(token * logits.width);
    rows.insert(rows.end(), row, row + static_cast<std::ptrdiff_t>(logits.width));
    offsets.push_back(single.offsets[token]);
  }
}

void evaluate_leads(const LeadOracle& oracle, std::vector<EvaluationPoint>& evaluations, unsigned threads,
                    const Front* front) {
  const int exponent = oracle.single->exponent;
  std::vector<float> points;
  std::vector<double> own;
  std::vector<PointState> states;
  for (const EvaluationPoint& evaluation : evaluations) {
    for (const double value : evaluation.point) points.push_back(static_cast<float>(value));
    own.push_back(own_score(oracle, evaluation));
    // Twice the float32 error: of the token's own score and of the other one.
    const double threshold = own.back() - evaluation.within - 2.0 * oracle.single->error;
    std::size_t row = evaluation.token;
    if (front != nullptr) {
      const auto at = std::lower_bound(front->tokens.begin(), front->tokens.end(), evaluation.token);
      const bool is_in = at != front->tokens.end() && *at == evaluation.token;
      row = is_in ? static_cast<std::size_t>(at - front->tokens.begin()) : front->tokens.size();
    }
    states.push_back({row, static_cast<float>(std::scalbn(threshold, -exponent))});
  }
  const std::size_t width = oracle.logits->width;
  const TokenRows rows =
      front == nullptr
          ? TokenRows{oracle.single->rows.data(), oracle.single->offsets.data(), oracle.logits->tokens, width}
          : TokenRows{front->rows.data(), front->offsets.data(), front->tokens.size(), width,
                      front->tokens.data()};
  scan(points, rows, threads, states);
  parallel_for(evaluations.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t s = begin; s < end; ++s) {
      std::vector<Candidate>& candidates = states[s].candidates;
      const float best = states[s].best;
      // Over all tokens that are no candidates, the lead is the float32 value minus its error.
      const double others = own[s] - std::scalbn(static_cast<double>(best), exponent) - oracle.single->error;
      const double floor = candidates.empty() ? others : evaluations[s].within + 0.5 * oracle.single->error;
      settle(oracle, evaluations[s], own[s], std::move(candidates), floor);
      evaluations[s].lower = is_in_ball(evaluations[s].point)
                                 ? evaluations[s].lower - 2.0 * oracle.logits->rounding
                                 : -std::numeric_limits<double>::infinity();
    }
  });
}

bool is_in_ball(std::span<const double> point) {
  return euclidean_norm(point) * (1.0 + 8.0 * unit_roundoff) <= 1.0;
}

double lower_bound(const LeadOracle& oracle, std::size_t token, std::span<const double> point,
                   std::size_t other) {
  if (other == oracle.logits->tokens) {
    const double lead = oracle.logits->scale * point.back();
    return lead - unit_roundoff * std::abs(lead) - std::numeric_limits<double>::min();
  }
  const std::span<const double> a = oracle.logits->view().row(token);
  const std::span<const double> b = oracle.logits->view().row(other);
  const DoubleDouble offset = two_sum(oracle.logits->offsets[token], -oracle.logits->offsets[other]);
  const Bounded plain = quick_difference_dot(point, a, b);
  const double quick =
      plain.low() + offset.high - 4.0 * unit_roundoff * (std::abs(offset.high) + plain.error);
  // If rounding could change the sign, the difference is summed again in twice the precision.
  if (quick > enough_digits * plain.error) return quick - 2.0 * unit_roundoff * std::abs(quick);
  ExactSum sum;
  for (std::size_t i = 0; i < a.size(); ++i) sum.add(two_sum(a[i], -b[i]), point[i]);
  sum.add(offset, 1.0);
  return sum.result().low();
}

double upper_bound(const LeadOracle& oracle, std::size_t token,
                   const std::vector<proof::PointWeight>& weights) {
  const Logits& logits = *oracle.logits;
  const double total = total_weight(weights, oracle.rows(), token);
  if (total == 0.0) return std::numeric_limits<double>::infinity();
  // Each entry is summed as a pair of numbers, so that only the terms themselves round.
  std::vector<double> row(logits.width);
  std::vector<double> sums(logits.width);
  std::vector<double> rest(logits.width);
  CompensatedSum offset;
  double size = 0.0;
  double rounds = 0.0;
  double weighed = 0.0;
  for (const proof::PointWeight& share : weights) {
    const double weight = share.weight / total;
    const double by = oracle.difference(token, share.id, row);
    double square = 0.0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const DoubleDouble sum = two_sum(sums[i], weight * row[i]);
      sums[i] = sum.high;
      rest[i] += sum.low;
      square += row[i] * row[i];
    }
    offset.add(weight * by);
    size += weight * (std::sqrt(square) + std::abs(by));
    // The difference of duplicates is exactly zero.
    if (share.id < logits.tokens && !are_duplicates(logits.duplicates, token, share.id)) {
      rounds += weight;
      weighed += weight * logits.own[share.id].rounding;
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += rest[i];
  // Difference, weight, product and sum each round a term by u; a length by 8u of itself.
  const double terms = static_cast<double>(weights.size() + 4);
  const double error = 8.0 * unit_roundoff * size + terms * terms * unit_roundoff * unit_roundoff * size +
                       (size > 0.0 ? static_cast<double>(logits.width) * terms : 0.0) *
                           std::numeric_limits<double>::denorm_min();
  return euclidean_norm(sums) * (1.0 + 8.0 * unit_roundoff) + offset.value() + error +
         (std::min(1.0, rounds) * logits.own[token].rounding + weighed) * (1.0 + 1e-12);
}

double tie(const LeadOracle& oracle, std::size_t token, const std::vector<proof::PointWeight>& weights,
           double relative) {
  const Logits& logits = *oracle.logits;
  double total = 0.0;
  double size = 0.0;
  double rounding_error = 0.0;
  for (const proof::PointWeight& share : weights) {
    if (share.id >= logits.tokens) continue;
    total += share.weight;
    size += share.weight * logits.own[share.id].size;
    rounding_error += share.weight * logits.own[share.id].rounding_error;
  }
  if (!(total > 0.0)) return 0.0;
  return std::max(relative * (size / total),
                  4.0 * (rounding_error / total + logits.own[token].rounding_error));
}

int offset_exponent(const Logits& logits) {
  double longest = 0.0;
  double highest = 0.0;
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    longest = std::max(longest, euclidean_norm(logits.view().row(token)));
    highest = std::max(highest, std::abs(logits.offsets[token]));
  }
  return longest > 0.0 && highest > 0.0 ? std::ilogb(longest) - std::ilogb(highest) : 0;
}

Logits cone(const Logits& logits) {
  Logits result{.tokens = logits.tokens, .width = logits.width + 1};
  result.duplicates = logits.duplicates;
  const int exponent = offset_exponent(logits);
  result.rows.reserve(result.tokens * result.width);
  result.offsets.assign(logits.tokens, 0.0);
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    const std::span<const double> row = logits.view().row(token);
    result.rows.insert(result.rows.end(), row.begin(), row.end());
    result.rows.push_back(std::scalbn(logits.offsets[token], exponent));
    const std::span<const double> longer = {result.rows.data() + token * result.width, result.width};
    const double length = euclidean_norm(longer);
    result.scale = std::max(result.scale, length);
    const double stretch = std::scalbn(1.0, std::max(0, exponent));
    const Logits::Own& own = logits.own[token];
    result.own.push_back(
        {std::min(length, stretch * own.size), stretch * own.rounding, stretch * own.rounding_error});
  }
  result.rounding = std::scalbn(logits.rounding, std::max(0, exponent));
  return result;
}

bool has_offsets(const Logits& logits) {
  return std::any_of(logits.offsets.begin(), logits.offsets.end(),
                     [&](double offset) { return offset != logits.offsets.front(); });
}

}  // namespace normscope::selectability
