#include <algorithm>

#include <normscope/analysis/text.hpp>
#include "finding_rules.hpp"

namespace normscope::analysis {
namespace {

/// Largest probability below which a token gets a finding.
constexpr double improbable = 0.5;

std::string token_names(const Report& report, const std::vector<std::size_t>& which) {
  return first_few(
      which, [&](std::size_t token) { return selectability::token_name(report.vocabulary.names, token); });
}

}  // namespace

void add_vocabulary_findings(const Report& report, Findings& findings) {
  if (!report.vocabulary.survey) return;
  const selectability::Survey& survey = *report.vocabulary.survey;
  const std::string reproduce = "normscope reach " + shell_quoted(report.path);
  const std::vector<std::vector<std::size_t>>& ties = report.vocabulary.ties;
  const std::vector<std::size_t> unreachable =
      selectability::without_ties(survey.with(proof::Answer::no), ties);
  if (!unreachable.empty()) {
    const auto without_bound = static_cast<std::size_t>(std::count_if(
        unreachable.begin(), unreachable.end(),
        [&](std::size_t token) { return survey.tokens[token].unbounded == proof::Answer::no; }));
    findings.push_back({.kind = "unreachable_tokens",
                        .text = fmt::format("{} of {} can never have the largest logit after the final norm: "
                                            "{}. Without the norm's bound on hidden states it would be {}.",
                                            unreachable.size(), counted(survey.tokens.size(), "token"),
                                            token_names(report, unreachable), without_bound),
                        .numbers = {{"unreachable", static_cast<double>(unreachable.size())},
                                    {"without_bound", static_cast<double>(without_bound)}},
                        .severity = 0.8,
                        .reproduce = reproduce});
  }
  if (!ties.empty()) {
    const std::vector<std::size_t>& first = ties.front();
    std::size_t tied = 0;
    for (const std::vector<std::size_t>& group : ties) tied += group.size();
    findings.push_back(
        {.kind = "tied_tokens",
         .text = fmt::format(
             "{} of {} have the weights of another token, so that their logits are always equal: {} in the "
             "first of {}.",
             tied, counted(survey.tokens.size(), "token"), token_names(report, first),
             counted(ties.size(), "group")),
         .numbers = {{"tokens", static_cast<double>(tied)}, {"groups", static_cast<double>(ties.size())}},
         .severity = 0.3,
         .reproduce = reproduce});
  }
  const std::vector<std::size_t> least = survey.least_probable(1);
  if (!least.empty() && survey.probabilities[least[0]].upper < improbable) {
    const double most = survey.probabilities[least[0]].upper;
    findings.push_back({.kind = "improbable_token",
                        .text = fmt::format("No context gives {} a probability above {}.",
                                            token_names(report, least), number_at_most(most)),
                        .numbers = {{"probability", most}},
                        .severity = 0.5,
                        .reproduce = reproduce});
  }
}

}  // namespace normscope::analysis
