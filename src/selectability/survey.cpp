#include <normscope/selectability/survey.hpp>

#include <algorithm>
#include <numeric>

namespace normscope::selectability {
namespace {

using convex::Answer;

/// Tokens × tokens × width up to which every largest probability is worked out unless asked otherwise.
constexpr double small_work = 1e8;
/// Tokens whose largest lead or probability is worked out in a vocabulary too large for all.
constexpr std::size_t extremes = 32;
/// Rounds in which the largest leads of so many are.
constexpr std::size_t most_sharpenings = 16;
constexpr double probability_gap = 1e-3;

/// The reachable tokens with the smallest proved lead, the smallest first.
std::vector<std::size_t> lowest(const Survey& survey, std::size_t most) {
  std::vector<std::size_t> result = survey.with(Answer::yes);
  std::stable_sort(result.begin(), result.end(), [&](std::size_t a, std::size_t b) {
    return survey.tokens[a].lower < survey.tokens[b].lower;
  });
  result.resize(std::min(most, result.size()));
  return result;
}

/// Who leads least where its own row points may lead by more elsewhere: works the largest leads out until the
/// least known are largest ones, or enough are known.
void sharpen_lowest(const Logits& logits, Survey& survey, const ReachOptions& options) {
  survey.sharp.assign(logits.tokens, false);
  for (std::size_t round = 0; round < most_sharpenings; ++round) {
    std::vector<std::size_t> asked = lowest(survey, extremes);
    asked.erase(
        std::remove_if(asked.begin(), asked.end(), [&](std::size_t token) { return survey.sharp[token]; }),
        asked.end());
    if (asked.empty()) break;
    sharpen(logits, survey.tokens, asked, options);
    for (const std::size_t token : asked) survey.sharp[token] = true;
  }
}

void refine(const Logits& logits, Survey& survey, Probabilities how, const std::vector<std::size_t>& also,
            const ReachOptions& options) {
  const double count = static_cast<double>(logits.tokens);
  const bool small = count * count * static_cast<double>(logits.width) <= small_work;
  const bool all = how == Probabilities::full || (how == Probabilities::extremes && small);
  std::vector<bool> wanted(logits.tokens, all);
  for (const std::size_t token : also) wanted[token] = true;
  if (!all && how == Probabilities::extremes) {
    for (const std::size_t token : survey.nearest(extremes)) wanted[token] = true;
    for (const std::size_t token : survey.least_probable(extremes)) wanted[token] = true;
  }
  survey.refined.clear();
  for (std::size_t token = 0; token < wanted.size(); ++token) {
    if (wanted[token]) survey.refined.push_back(token);
  }
  std::vector<Probability> found = largest_probabilities(
      logits, survey.refined,
      {.gap = probability_gap, .threads = options.threads, .progress = options.progress});
  for (std::size_t i = 0; i < found.size(); ++i) {
    Probability& known = survey.probabilities[survey.refined[i]];
    if (found[i].lower > known.lower) {
      known.lower = found[i].lower;
      known.point = std::move(found[i].point);
    }
    if (found[i].upper < known.upper) {
      known.upper = found[i].upper;
      known.tangent = std::move(found[i].tangent);
    }
  }
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
  std::vector<std::size_t> result = lowest(*this, tokens.size());
  result.erase(std::remove_if(result.begin(), result.end(),
                              [&](std::size_t token) { return sharp.empty() || !sharp[token]; }),
               result.end());
  result.resize(std::min(most, result.size()));
  return result;
}

std::vector<std::size_t> Survey::least_probable(std::size_t most) const {
  std::vector<std::size_t> result(tokens.size());
  std::iota(result.begin(), result.end(), 0);
  std::stable_sort(result.begin(), result.end(), [&](std::size_t a, std::size_t b) {
    return probabilities[a].upper < probabilities[b].upper;
  });
  result.resize(std::min(most, result.size()));
  return result;
}

std::size_t Survey::unargmaxable() const {
  return static_cast<std::size_t>(std::count_if(tokens.begin(), tokens.end(), [](const TokenReach& token) {
    return token.done && token.unbounded == Answer::no;
  }));
}

void bound_by_leads(Survey& survey) {
  survey.probabilities.clear();
  for (const TokenReach& token : survey.tokens) {
    survey.probabilities.push_back(probability_from_lead(token, survey.tokens.size()));
  }
}

void finish(const Logits& logits, Survey& survey, Probabilities wanted, const std::vector<std::size_t>& asked,
            const ReachOptions& options) {
  sharpen_lowest(logits, survey, options);
  bound_by_leads(survey);
  refine(logits, survey, wanted, asked, options);
}

}  // namespace normscope::selectability
