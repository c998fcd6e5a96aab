#include <algorithm>

#include <gtest/gtest.h>

#include <normscope/analysis/report.hpp>

namespace normscope::analysis {
namespace {

/// A report with nothing but a vocabulary of four tokens, the last of which has this answer and bound.
Report report_of(proof::Answer last, double probability) {
  Report report;
  report.path = "model.safetensors";
  selectability::Survey survey;
  for (std::size_t i = 0; i < 4; ++i) {
    const bool is_last = i == 3;
    survey.tokens.push_back({.done = true,
                             .answer = is_last ? last : proof::Answer::yes,
                             .unbounded = proof::Answer::yes,
                             .lower = 1.0,
                             .upper = 2.0});
    survey.probabilities.push_back({0.0, is_last ? probability : 0.9});
  }
  report.vocabulary.survey = survey;
  report.vocabulary.names = {"a", "b", "c", "the"};
  return report;
}

std::vector<std::string> texts(const Report& report) {
  std::vector<std::string> result;
  for (const Finding& finding : find(report)) {
    if (finding.kind == "unreachable_tokens" || finding.kind == "improbable_token") {
      EXPECT_EQ(finding.reproduce, "normscope reach model.safetensors");
      result.push_back(finding.text);
    }
  }
  std::sort(result.begin(), result.end());
  return result;
}

TEST(VocabularyFindings, NameUnreachableTokens) {
  EXPECT_EQ(
      texts(report_of(proof::Answer::no, 0.2)),
      (std::vector<std::string>{"1 of 4 tokens can never have the largest logit after the final norm: token "
                                "3 \"the\". Without the norm's bound on hidden states it would be 0.",
                                "No context gives token 3 \"the\" a probability above 0.2."}));
}

TEST(VocabularyFindings, AreEmptyIfEveryTokenIsReachable) {
  EXPECT_TRUE(texts(report_of(proof::Answer::yes, 0.8)).empty());
  EXPECT_TRUE(texts(report_of(proof::Answer::undecided, 0.8)).empty());
}

}  // namespace
}  // namespace normscope::analysis
