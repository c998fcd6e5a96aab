#include "analysis/vocabulary_reports.hpp"

#include <gtest/gtest.h>

#include "analysis/norms.hpp"

namespace normscope::analysis {
namespace {

TEST(VocabularyFindings, AreAboutUnreachableAndImprobableTokens) {
  const std::vector<Finding> findings = find(report_of(proof::Answer::no, 0.2));
  const UnreachableTokens* const unreachable = find_property<UnreachableTokens>(findings);
  ASSERT_NE(unreachable, nullptr);
  EXPECT_EQ(unreachable->tokens, std::vector<std::size_t>{3});
  EXPECT_EQ(unreachable->without_bound, 0U);
  const ImprobableToken* const improbable = find_property<ImprobableToken>(findings);
  ASSERT_NE(improbable, nullptr);
  EXPECT_EQ(improbable->token, 3U);
  EXPECT_EQ(improbable->probability, 0.2);
}

TEST(VocabularyFindings, AreAbsentIfEveryTokenIsReachable) {
  for (const proof::Answer answer : {proof::Answer::yes, proof::Answer::undecided}) {
    const std::vector<Finding> findings = find(report_of(answer, 0.8));
    EXPECT_EQ(find_kind<UnreachableTokens>(findings), nullptr);
    EXPECT_EQ(find_kind<ImprobableToken>(findings), nullptr);
  }
}

}  // namespace
}  // namespace normscope::analysis
