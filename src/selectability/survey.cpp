#include <normscope/selectability/reach.hpp>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "decide_tokens.hpp"

namespace normscope::selectability {
namespace {

using proof::Answer;

/// Work limit (tokens × tokens × width) up to which all largest probabilities are computed by default.
constexpr double small_work = 1e8;
/// Tokens processed at most for each token requested.
constexpr std::size_t worked_for_one = 26;
/// Products of a point with all tokens that the limit of work counts for one largest probability.
constexpr double products_for_one = 100.0;
/// Tokens whose probabilities are computed between two checks of that limit.
std::size_t group_size(const Logits& logits) {
  constexpr double entries = 2e8;
  return static_cast<std::size_t>(
      std::clamp(entries / static_cast<double>(logits.tokens * logits.width), 4.0, 256.0));
}

/// The indices of the `most` smallest values, the smallest first.
std::vector<std::size_t> smallest(const std::vector<double>& values, std::size_t most) {
  std::vector<std::size_t> result(values.size());
  std::iota(result.begin(), result.end(), 0);
  std::stable_sort(result.begin(), result.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  result.resize(std::min(most, result.size()));
  return result;
}

std::vector<std::size_t> wanted_probabilities(const Logits& logits, const Survey& survey,
                                              const SurveyOptions& wanted) {
  const double count = static_cast<double>(logits.tokens);
  const bool small = count * count * static_cast<double>(logits.width) <= small_work;
  const bool extremes = wanted.probabilities == Probabilities::extremes;
  const bool all = wanted.probabilities == Probabilities::full || (extremes && small);
  std::vector<bool> is_wanted(logits.tokens, all);
  for (const std::size_t token : wanted.asked) is_wanted[token] = true;
  if (!all && extremes) {
    for (const std::size_t token : survey.nearest(wanted.nearest)) is_wanted[token] = true;
    // Ordered by leads alone, whatever was computed before an interruption.
    std::vector<double> uppers;
    for (const TokenReach& token : survey.tokens) {
      uppers.push_back(probability_from_lead(token, logits.tokens).upper);
    }
    for (const std::size_t token : smallest(uppers, wanted.nearest)) is_wanted[token] = true;
  }
  std::vector<std::size_t> result;
  for (std::size_t token = 0; token < is_wanted.size(); ++token) {
    if (is_wanted[token]) result.push_back(token);
  }
  return result;
}

void take(Probability& known, Probability found) {
  if (found.lower > known.lower) {
    known.lower = found.lower;
    known.point = std::move(found.point);
  }
  if (found.upper < known.upper) {
    known.upper = found.upper;
    known.tangent = std::move(found.tangent);
    known.weights = std::move(found.weights);
  }
}

void refine(const Logits& logits, Survey& survey, const SurveyOptions& wanted, const ReachOptions& options) {
  std::vector<std::size_t> left;
  const std::vector<std::size_t> all = wanted_probabilities(logits, survey, wanted);
  std::set_difference(all.begin(), all.end(), survey.refined.begin(), survey.refined.end(),
                      std::back_inserter(left));
  const Team& team = *options.team;
  const std::size_t group = group_size(logits) * team.size();
  const double work_for_one = work_of(logits, products_for_one);
  std::size_t done = 0;
  while (done < left.size() && static_cast<double>(done) * work_for_one < options.work) {
    const std::vector<std::size_t> some(
        left.begin() + static_cast<std::ptrdiff_t>(done),
        left.begin() + static_cast<std::ptrdiff_t>(std::min(left.size(), done + group)));
    const std::size_t before = done;
    const Progress progress([&](std::string_view what, std::size_t now, std::size_t) {
      options.progress(what, before + now, left.size());
      return true;
    });
    const std::vector<std::size_t> own = own_part(some, team);
    std::vector<Probability> found;
    together(team, [&] {
      found = largest_probabilities(
          logits, own, {.gap = wanted.probability_gap, .threads = options.threads, .progress = progress});
    });
    for (std::size_t i = 0; i < own.size(); ++i) {
      take(survey.probabilities[own[i]], std::move(found[i]));
    }
    exchange(some, survey.probabilities, team);
    const auto middle = static_cast<std::ptrdiff_t>(survey.refined.size());
    survey.refined.insert(survey.refined.end(), some.begin(), some.end());
    std::inplace_merge(survey.refined.begin(), survey.refined.begin() + middle, survey.refined.end());
    done += some.size();
  }
  survey.left_out.probabilities = left.size() - done;
}

}  // namespace

std::vector<std::size_t> Survey::with(Answer answer) const {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].done && tokens[i].answer == answer) result.push_back(i);
  }
  return result;
}

std::vector<std::size_t> Survey::nearest(std::size_t most) const {
  std::vector<std::size_t> result = reachable_by_lead(tokens);
  result.erase(std::remove_if(result.begin(), result.end(),
                              [&](std::size_t token) { return sharp.empty() || !sharp[token]; }),
               result.end());
  // Sorted by the bound that is printed, whose order may differ from that of the other bound.
  std::stable_sort(result.begin(), result.end(),
                   [&](std::size_t a, std::size_t b) { return tokens[a].upper < tokens[b].upper; });
  result.resize(std::min(most, result.size()));
  return result;
}

std::vector<std::size_t> Survey::least_probable(std::size_t most) const {
  std::vector<double> uppers;
  for (const Probability& probability : probabilities) uppers.push_back(probability.upper);
  return smallest(uppers, most);
}

std::size_t Survey::unargmaxable() const {
  return static_cast<std::size_t>(std::count_if(tokens.begin(), tokens.end(), [](const TokenReach& token) {
    return token.done && token.unbounded == Answer::no;
  }));
}

void bound_by_leads(Survey& survey) {
  survey.probabilities.resize(survey.tokens.size());
  std::vector<bool> known(survey.tokens.size(), false);
  for (const std::size_t token : survey.refined) known[token] = true;
  for (std::size_t token = 0; token < survey.tokens.size(); ++token) {
    Probability by_lead = probability_from_lead(survey.tokens[token], survey.tokens.size());
    if (known[token]) {
      take(by_lead, std::move(survey.probabilities[token]));
    }
    survey.probabilities[token] = std::move(by_lead);
  }
}

void finish_survey(const Logits& logits, Survey& survey, const SurveyOptions& wanted,
                   const ReachOptions& options) {
  survey.left_out = {};
  survey.wanted = wanted.nearest;
  survey.left_out.tokens = static_cast<std::size_t>(std::count_if(
      survey.tokens.begin(), survey.tokens.end(), [](const TokenReach& token) { return !token.done; }));
  // A step begins where the one before is complete, so that a run continued later gives the same numbers.
  ReachOptions rest = options;
  if (survey.left_out.tokens > 0) rest.work = 0.0;
  const std::size_t most = worked_for_one * wanted.nearest;
  survey.left_out.leads =
      sharpen_nearest(logits, survey.tokens, survey.sharp, survey.worked, wanted.nearest, most, rest);
  if (survey.left_out.leads > 0 && survey.worked < most) rest.work = 0.0;
  bound_by_leads(survey);
  refine(logits, survey, wanted, rest);
}

}  // namespace normscope::selectability
