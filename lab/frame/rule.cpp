#include "rule.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include <normscope/core/sha256.hpp>
#include <normscope/core/text.hpp>

namespace normscope::lab {
namespace {

std::string_view name_of(Test test) {
  switch (test) {
    case Test::every_case: return "every case";
    case Test::mean: return "Student's interval of the mean over seeds";
    case Test::equivalence: return "Student's interval of the mean difference over seeds, within bounds";
    case Test::share: break;
  }
  return "Wilson's interval of the share of trainings";
}

Outcome outcome_of(const Rule& rule, const Interval& interval, double estimate) {
  if (rule.test == Test::equivalence) {
    if (interval.low >= -rule.least && interval.high <= rule.least) return Outcome::reproduced;
    return interval.low > rule.least || interval.high < -rule.least ? Outcome::not_reproduced
                                                                    : Outcome::inconclusive;
  }
  if (interval.low > rule.absent && estimate >= rule.least) return Outcome::reproduced;
  return interval.high < rule.least ? Outcome::not_reproduced : Outcome::inconclusive;
}

}  // namespace

Verdict verdict(const Rule& rule, const Scale& scale, std::span<const double> effects, std::size_t seeds) {
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
    result.interval = rule.test == Test::share
                          ? wilson_interval(static_cast<std::size_t>(sum), effects.size(), rule.confidence)
                          : student_interval(effects, rule.confidence);
    result.outcome = outcome_of(rule, *result.interval, sum / static_cast<double>(effects.size()));
    if (result.outcome == Outcome::inconclusive) result.reason = "the interval allows both";
  }
  if (result.outcome == Outcome::not_reproduced && !rule.missing.empty()) {
    result.outcome = Outcome::inconclusive;
    result.reason = fmt::format("missing: {}", rule.missing);
  }
  return result;
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
          {"test", name_of(rule.test)},
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
