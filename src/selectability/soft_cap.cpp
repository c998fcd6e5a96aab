#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <normscope/core/parallel.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/selectability/vocabulary.hpp>

namespace normscope::selectability {
namespace {

constexpr double unit = 0x1p-53;
constexpr double least_normal = std::numeric_limits<double>::min();
/// Points tried for a token, and the work limit for all of them together in multiplications.
constexpr double most_points = 60.0;
constexpr double most_cap_work = 1e11;
/// Inside the ball by more than the rounding of the length.
constexpr double inside = 1.0 - 1e-12;

struct Range {
  double lower = infinity, upper = -infinity;
};

/// The logits before the cap including their common part, and the range of each over the ball.
class CappedHead {
 public:
  CappedHead(const VocabularyHead& head, unsigned threads) : head_(head), ranges_(head.logits.tokens) {
    parallel_for(ranges_.size(), 256, threads, [&](std::size_t begin, std::size_t end) {
      std::vector<double> row(head_.logits.width);
      for (std::size_t token = begin; token < end; ++token) {
        const std::span<const double> own = head_.logits.view().row(token);
        for (std::size_t i = 0; i < row.size(); ++i) row[i] = own[i] + head_.common[i];
        const double length = euclidean_norm(row);
        const double middle = head_.logits.offsets[token] + head_.common_offset;
        ranges_[token] = {middle - length, middle + length};
      }
    });
    const auto widen = [&] {
      all_ = {};
      for (const Range& range : ranges_) {
        all_ = {std::min(all_.lower, range.lower), std::max(all_.upper, range.upper)};
      }
    };
    widen();
    // The rounding of folding, of a product over the width and of the cap, in the difference of two logits.
    const double largest = std::max(-all_.lower, all_.upper) + head_.logits.scale;
    const double terms = static_cast<double>(head_.logits.width) + 64.0;
    slack_ = 2.0 * head_.logits.rounding + 4.0 * unit * (terms * largest + 8.0 * head_.soft_cap + 16.0);
    for (Range& range : ranges_) range = {range.lower - slack_, range.upper + slack_};
    widen();
  }

  [[nodiscard]] std::size_t tokens() const { return ranges_.size(); }
  [[nodiscard]] const Logits& logits() const { return head_.logits; }
  [[nodiscard]] const Range& range(std::size_t token) const { return ranges_[token]; }
  [[nodiscard]] const Range& all() const { return all_; }
  [[nodiscard]] double slack() const { return slack_; }
  [[nodiscard]] double rounding_of_caps() const { return 64.0 * unit * (head_.soft_cap + 1.0); }
  [[nodiscard]] double cap(double logit) const { return head_.soft_cap * std::tanh(logit / head_.soft_cap); }
  [[nodiscard]] double slope(double logit) const {
    const double t = std::tanh(logit / head_.soft_cap);
    return (1.0 - t) * (1.0 + t);
  }

  /// The smallest difference after the cap of two logits within `range` whose difference is at least `d`. The
  /// slope of the cap decreases away from 0, so it is attained at an end of the range.
  [[nodiscard]] double least_left(double d, const Range& range) const {
    const double apart = std::min(d, range.upper - range.lower);
    const double left =
        std::min(cap(range.lower + apart) - cap(range.lower), cap(range.upper) - cap(range.upper - apart));
    return std::max(left - slack_, 0.0);
  }

  /// The smallest e^m, relative to the largest for any token.
  [[nodiscard]] double lowest(std::size_t token) const {
    return std::exp(cap(ranges_[token].lower) - cap(all_.upper));
  }

  void evaluate(std::span<const double> u, std::vector<double>& before) const {
    before.resize(tokens());
    const double common = plain_dot(head_.common, u) + head_.common_offset;
    for (std::size_t j = 0; j < tokens(); ++j) {
      before[j] = plain_dot(head_.logits.view().row(j), u) + head_.logits.offsets[j] + common;
    }
  }

  /// The probabilities for the logits `before` the cap; returns the logarithm of that of `token`.
  double softmax(std::size_t token, const std::vector<double>& before, std::vector<double>& share) const {
    share.resize(tokens());
    std::transform(before.begin(), before.end(), share.begin(), [&](double logit) { return cap(logit); });
    const double most = *std::max_element(share.begin(), share.end());
    const double own = share[token] - most;
    CompensatedSum sum;
    for (double& logit : share) sum.add(logit = std::exp(logit - most));
    for (double& weight : share) weight /= sum.value();
    return own - std::log(sum.value());
  }

  /// The direction of steepest ascent of log p, of length 1 unless the gradient is zero.
  [[nodiscard]] std::vector<double> ascent(std::size_t token, const std::vector<double>& before,
                                           const std::vector<double>& share) const {
    std::vector<double> direction(head_.common.size());
    double total = 0.0;
    for (std::size_t j = 0; j < tokens(); ++j) {
      const double weight = ((j == token ? 1.0 : 0.0) - share[j]) * slope(before[j]);
      total += weight;
      const std::span<const double> row = head_.logits.view().row(j);
      for (std::size_t i = 0; i < row.size(); ++i) direction[i] += weight * row[i];
    }
    for (std::size_t i = 0; i < direction.size(); ++i) direction[i] += total * head_.common[i];
    const double length = euclidean_norm(direction);
    for (double& entry : direction) entry = length > 0.0 ? entry / length : 0.0;
    return direction;
  }

 private:
  const VocabularyHead& head_;
  std::vector<Range> ranges_;
  Range all_{};
  double slack_ = 0.0;
};

/// The logarithm of a lower bound of the sum of e^(m_j - m_i) over the other tokens.
double least_odds_against(const CappedHead& head, std::size_t token, const TokenReach& reach, double uncapped,
                          double sum_of_lowest) {
  const Range range = {head.range(token).lower, head.all().upper};
  const double odds = uncapped >= 1.0 ? -infinity : std::log1p(-uncapped) - std::log(uncapped);
  const double steepest = std::max(std::abs(range.lower), std::abs(range.upper));
  double bound = odds <= 0.0 ? odds : odds * head.slope(steepest) * (1.0 - 1e-9);
  const double each = odds - std::log(static_cast<double>(head.tokens()) - 1.0);
  if (each > 0.0) bound = std::max(bound, head.least_left(each, range));
  if (reach.upper < 0.0) bound = std::max(bound, head.least_left(-reach.upper, range));
  const double lowest = sum_of_lowest * (1.0 - 1e-12) - head.lowest(token);
  if (lowest > 0.0) {
    bound = std::max(bound, std::log(lowest) + head.cap(range.upper) - head.cap(head.range(token).upper));
  }
  return bound - head.slack();
}

/// The lead at the witness after the cap, at no extra cost.
double from_lead(const CappedHead& head, std::size_t token, const TokenReach& reach) {
  if (!(reach.lower > 0.0)) return 0.0;
  const double left = head.least_left(reach.lower, {head.all().lower, head.range(token).upper});
  const double others = static_cast<double>(head.tokens()) - 1.0;
  // Even if nothing is left of the lead, another who computes both logits rounds tanh and the cap.
  return (1.0 - 8.0 * unit) / (1.0 + others * std::exp(head.rounding_of_caps() - left));
}

/// An attained probability and its point, by gradient ascent from the witness or from the token's own
/// direction.
Probability climb(const CappedHead& head, std::size_t token, const TokenReach& reach, double points) {
  const std::span<const double> row = head.logits().view().row(token);
  // Without eps, points lie on the surface of the ball.
  const bool sphere = head.logits().sphere;
  const double longest = sphere ? 1.0 : inside;
  std::vector<double> u;
  if (reach.answer == proof::Answer::yes) {
    u = witness(head.logits(), token, reach);
  } else {
    const double length = euclidean_norm(row);
    u.assign(row.begin(), row.end());
    for (double& entry : u) entry = length > 0.0 ? longest * (entry / length) : 0.0;
  }
  std::vector<double> before, share, next_before, next_share;
  head.evaluate(u, before);
  double best = head.softmax(token, before, share);
  std::vector<double> direction = head.ascent(token, before, share);
  double step = 0.5;
  for (double spent = 2.0; spent < points && step > 1e-7; spent += 1.0) {
    std::vector<double> next = u;
    for (std::size_t i = 0; i < next.size(); ++i) next[i] += step * direction[i];
    const double length = euclidean_norm(next);
    if (sphere || length > longest) {
      for (double& entry : next) entry *= longest / length;
    }
    head.evaluate(next, next_before);
    const double found = head.softmax(token, next_before, next_share);
    if (!(found > best)) {
      step /= 3.0;
      continue;
    }
    best = found;
    u.swap(next);
    before.swap(next_before);
    share.swap(next_share);
    direction = head.ascent(token, before, share);
    step *= 1.5;
    spent += 1.0;
  }
  // A point stands for the nearest one of the sphere.
  for (double& entry : u) entry *= sphere ? inside : 1.0;
  const double lower = std::exp(best - head.slack());
  return {.lower = lower >= least_normal ? lower : 0.0, .point = std::move(u)};
}

}  // namespace

void cap_probabilities(const VocabularyHead& vocabulary, Survey& survey, unsigned threads) {
  const std::size_t tokens = vocabulary.logits.tokens;
  if (tokens < 2) return;
  const CappedHead head(vocabulary, threads);
  CompensatedSum lowest;
  for (std::size_t j = 0; j < tokens; ++j) lowest.add(head.lowest(j));
  for (std::size_t i = 0; i < tokens; ++i) {
    Probability& probability = survey.probabilities[i];
    const double odds = least_odds_against(head, i, survey.tokens[i], probability.upper, lowest.value());
    probability.upper = std::clamp((1.0 + 8.0 * unit) / (1.0 + std::exp(odds)), least_normal, 1.0);
    probability.lower = std::min(from_lead(head, i, survey.tokens[i]), probability.upper);
    // Points for the logits before the cap prove nothing after it; the witness of the lead does.
    probability.point.clear();
    probability.tangent.clear();
    probability.weights.clear();
  }
  const double a_point = static_cast<double>(tokens) * static_cast<double>(vocabulary.logits.width);
  const double refined = static_cast<double>(survey.refined.size());
  const double points = std::clamp(most_cap_work / std::max(a_point * refined, 1.0), 2.0, most_points);
  parallel_for(survey.refined.size(), 1, threads, [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      const std::size_t token = survey.refined[k];
      Probability& probability = survey.probabilities[token];
      Probability attained = climb(head, token, survey.tokens[token], points);
      if (!(attained.lower > probability.lower)) continue;
      probability.lower = std::min(attained.lower, probability.upper);
      probability.point = std::move(attained.point);
    }
  });
}

}  // namespace normscope::selectability
