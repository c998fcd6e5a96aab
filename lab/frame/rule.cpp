#include "rule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include <fmt/core.h>
#include <normscope/core/error.hpp>
#include <normscope/core/snapshot.hpp>
#include <normscope/core/text.hpp>

namespace normscope::lab {
namespace {

/// P(|T| <= sqrt(freedom) tan(angle)): finite sums for an integer number of degrees of freedom.
double student_within(double angle, std::size_t freedom) {
  const double cosine = std::cos(angle);
  const bool odd = freedom % 2 == 1;
  double term = odd ? cosine : 1.0;
  double sum = freedom == 1 ? 0.0 : term;
  for (std::size_t power = odd ? 3 : 2; power + 2 <= freedom; power += 2) {
    term *= static_cast<double>(power - 1) / static_cast<double>(power) * cosine * cosine;
    sum += term;
  }
  return odd ? 2.0 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
}

/// The argument between `low` and `high` at which the rising `function` is `value`.
template <class Function>
double bisect(double low, double high, double value, const Function& function) {
  constexpr int halvings = 200;
  for (int i = 0; i < halvings; ++i) {
    const double middle = 0.5 * (low + high);
    (function(middle) < value ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

}  // namespace

double student_quantile(double confidence, std::size_t freedom) {
  NORMSCOPE_ASSERT(freedom >= 1 && confidence > 0.0 && confidence < 1.0);
  const double angle =
      bisect(0.0, 0.5 * std::numbers::pi, confidence, [&](double at) { return student_within(at, freedom); });
  return std::sqrt(static_cast<double>(freedom)) * std::tan(angle);
}

Interval student_interval(std::span<const double> numbers, double confidence) {
  NORMSCOPE_ASSERT(numbers.size() >= 2);
  const auto count = static_cast<double>(numbers.size());
  double mean = 0.0;
  for (const double number : numbers) mean += number / count;
  double squares = 0.0;
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  const double half =
      student_quantile(confidence, numbers.size() - 1) * std::sqrt(squares / (count - 1.0) / count);
  return {mean - half, mean + half};
}

Interval wilson_interval(double share, std::size_t trials, double confidence) {
  NORMSCOPE_ASSERT(trials >= 1 && share >= 0.0 && share <= 1.0 && confidence > 0.0 && confidence < 1.0);
  const double z =
      bisect(0.0, 40.0, confidence, [](double at) { return std::erf(at / std::numbers::sqrt2); });
  const auto n = static_cast<double>(trials);
  const double middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
  const double half = z / (1.0 + z * z / n) * std::sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n));
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

std::string_view to_string(Test test) {
  switch (test) {
    case Test::every_case: return "every case";
    case Test::mean: return "Student's interval of the mean over seeds";
    case Test::equivalence: return "Student's interval of the mean difference over seeds, within bounds";
    case Test::share: break;
  }
  return "Wilson's interval of the share of trainings";
}

namespace {

Outcome outcome_of(const Rule& rule, const Interval& interval, double estimate) {
  if (rule.test == Test::equivalence) {
    if (interval.low >= -rule.least && interval.high <= rule.least) return Outcome::reproduced;
    return interval.low > rule.least || interval.high < -rule.least ? Outcome::not_reproduced
                                                                    : Outcome::inconclusive;
  }
  if (interval.low > rule.absent && estimate >= rule.least) return Outcome::reproduced;
  return interval.high < rule.least ? Outcome::not_reproduced : Outcome::inconclusive;
}

/// The confidence of each interval if `chosen_from` of them are to hold at once.
double confidence_of_each(const Rule& rule, std::size_t chosen_from) {
  return 1.0 - (1.0 - rule.confidence) / static_cast<double>(std::max<std::size_t>(1, chosen_from));
}

/// P(at least `least` of `trials` succeed).
double at_least(std::size_t least, std::size_t trials, double probability) {
  double sum = 0.0;
  double ways = 1.0;
  for (std::size_t k = 0; k <= trials; ++k) {
    const auto wins = static_cast<double>(k);
    const auto losses = static_cast<double>(trials - k);
    if (k >= least) sum += ways * std::pow(probability, wins) * std::pow(1.0 - probability, losses);
    ways *= losses / (wins + 1.0);
  }
  return sum;
}

}  // namespace

std::optional<double> least_seen(const Rule& rule, std::span<const double> effects, std::size_t seeds,
                                 std::size_t chosen_from) {
  constexpr double often = 0.8;
  if (rule.test == Test::every_case || effects.size() < 2) return std::nullopt;
  const double confidence = confidence_of_each(rule, chosen_from);
  if (rule.test == Test::share) {
    const std::size_t trials = std::min(effects.size(), seeds);
    std::size_t wins = 0;
    while (wins <= trials &&
           wilson_interval(static_cast<double>(wins) / static_cast<double>(trials), trials, confidence).low <=
               rule.absent)
      ++wins;
    if (wins > trials) return std::nullopt;
    return bisect(0.0, 1.0, often, [&](double share) { return at_least(wins, trials, share); });
  }
  const Interval interval = student_interval(effects, confidence);
  const std::size_t freedom = effects.size() - 1;
  const double of_interval = student_quantile(confidence, freedom);
  const double error = 0.5 * (interval.high - interval.low) / of_interval;
  // Above the least effect in one tail; within bounds in both.
  const double tail = student_quantile(rule.test == Test::mean ? 2.0 * often - 1.0 : often, freedom);
  return (rule.test == Test::mean ? rule.absent : 0.0) + (of_interval + tail) * error;
}

Verdict verdict(const Rule& rule, const Scale& scale, std::span<const double> effects, std::size_t seeds,
                std::size_t chosen_from) {
  Verdict result{.factor = scale.factor};
  if (effects.empty() || seeds < rule.seeds) {
    result.reason = fmt::format("{} of {}", effects.empty() ? 0 : seeds, counted(rule.seeds, "seed"));
    return result;
  }
  const double sum = std::accumulate(effects.begin(), effects.end(), 0.0);
  if (rule.test == Test::every_case) {
    const bool all = std::all_of(effects.begin(), effects.end(), [](double agrees) { return agrees == 1.0; });
    result.outcome = all ? Outcome::reproduced : Outcome::not_reproduced;
  } else if (effects.size() < 2 || (rule.test != Test::share && effects.size() < rule.seeds)) {
    result.reason =
        fmt::format("{} of {}", effects.size(), counted(std::max<std::size_t>(2, rule.seeds), "seed"));
    return result;
  } else {
    const double mean = sum / static_cast<double>(effects.size());
    const double confidence = confidence_of_each(rule, chosen_from);
    result.interval = rule.test == Test::share
                          ? wilson_interval(mean, std::min(effects.size(), seeds), confidence)
                          : student_interval(effects, confidence);
    result.outcome = outcome_of(rule, *result.interval, mean);
    if (result.outcome == Outcome::inconclusive) result.reason = "the interval allows both";
  }
  if (result.outcome == Outcome::not_reproduced && !rule.missing.empty()) {
    result.outcome = Outcome::inconclusive;
    result.reason = fmt::format("missing: {}", rule.missing);
  }
  return result;
}

Verdict doubted(Verdict verdict, std::string_view doubt) {
  if (doubt.empty() || verdict.outcome == Outcome::inconclusive) return verdict;
  verdict.reason = fmt::format("{} by its rule, but {}", to_string(verdict.outcome), doubt);
  verdict.outcome = Outcome::inconclusive;
  return verdict;
}

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::reproduced: return "reproduced";
    case Outcome::not_reproduced: return "not reproduced";
    case Outcome::inconclusive: break;
  }
  return "inconclusive";
}

std::string to_string(const Verdict& verdict) {
  std::string text(to_string(verdict.outcome));
  if (!verdict.reason.empty()) text += fmt::format(" ({})", verdict.reason);
  if (verdict.factor <= 1.0) return text;
  return fmt::format("not at the paper's size (1/{:.3g}); at ours {}", verdict.factor, text);
}

nlohmann::ordered_json to_json(const Rule& rule) {
  return {{"says", rule.says},
          {"test", to_string(rule.test)},
          {"seeds", rule.seeds},
          {"least", rule.least},
          {"absent", rule.absent},
          {"missing", rule.missing},
          {"confidence", rule.confidence}};
}

std::string hash_of(const Rule& rule) {
  const std::string text = to_json(rule).dump();
  return to_hex(sha256(std::as_bytes(std::span(text.data(), text.size()))));
}

}  // namespace normscope::lab
