#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/selectability/reach.hpp>

#include "heads.hpp"
#include "support/thread_team.hpp"

namespace normscope::selectability {
namespace {

using proof::Answer;

Survey surveyed(const Logits& logits, const SurveyOptions& wanted, const ReachOptions& options) {
  Survey survey;
  decide(logits, survey.tokens, options);
  finish_survey(logits, survey, wanted, options);
  return survey;
}

bool is_known_exactly(const Survey& survey, std::size_t token, double scale) {
  return survey.tokens[token].upper - survey.tokens[token].lower <= 2e-6 * scale;
}

TEST(Survey, NoTokenIsNearerThanThoseNamed) {
  constexpr std::size_t named = 5;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const Logits logits = random_head(150, 6, NormKind::rms, seed, seed % 2 == 0 ? 0.0 : 0.5).logits();
    const SurveyOptions few{.nearest = named, .probabilities = Probabilities::quick};
    const Survey survey = surveyed(logits, few, {.threads = 1});
    EXPECT_TRUE(survey.left_out.nothing()) << seed;
    const std::vector<std::size_t> nearest = survey.nearest(named);
    ASSERT_EQ(nearest.size(), named) << seed;
    double most = 0.0;
    for (const std::size_t token : nearest) {
      EXPECT_TRUE(is_known_exactly(survey, token, logits.scale)) << seed << " " << token;
      most = std::max(most, survey.tokens[token].upper);
    }
    std::vector<TokenReach> all = survey.tokens;
    std::vector<std::size_t> asked(logits.tokens);
    std::iota(asked.begin(), asked.end(), 0);
    sharpen(logits, all, asked, {.threads = 1});
    for (const std::size_t token : survey.with(Answer::yes)) {
      if (std::find(nearest.begin(), nearest.end(), token) != nearest.end()) continue;
      EXPECT_GE(all[token].upper, most - 1e-6 * logits.scale) << seed << " " << token;
    }
  }
}

TEST(Survey, NearestTokensAreSortedByTheirBounds) {
  Survey survey;
  // Overlapping intervals whose lower ends are sorted differently from their upper ends.
  for (const auto& [lower, upper] : {std::pair{1.0, 4.0}, {2.0, 3.0}, {0.5, 5.0}, {2.5, 2.75}, {0.1, 9.0}}) {
    TokenReach token;
    token.done = true;
    token.answer = Answer::yes;
    token.lower = lower;
    token.upper = upper;
    survey.tokens.push_back(token);
    survey.sharp.push_back(upper < 9.0);
  }
  EXPECT_EQ(survey.nearest(5), (std::vector<std::size_t>{3, 1, 0, 2}));
  EXPECT_EQ(survey.nearest(2), (std::vector<std::size_t>{3, 1}));
}

TEST(Survey, LeftOutWorkIsCountedAndCompletedLater) {
  const Logits logits = random_head(900, 5, NormKind::layer, 3, 1.0).logits();
  const SurveyOptions wanted{.nearest = 7};
  const ReachOptions unlimited{.threads = 1};
  const Survey whole = surveyed(logits, wanted, unlimited);
  EXPECT_TRUE(whole.left_out.nothing());
  ReachOptions none = unlimited;
  none.work = 0.0;
  ReachOptions little = unlimited;
  little.work = 1.0;
  for (const ReachOptions& limits : {none, little}) {
    Survey part = surveyed(logits, wanted, limits);
    const auto open = static_cast<std::size_t>(std::count_if(
        part.tokens.begin(), part.tokens.end(), [](const TokenReach& token) { return !token.done; }));
    EXPECT_GT(open, 0U);
    EXPECT_EQ(part.left_out.tokens, open);
    // Undecided tokens have trivial bounds.
    for (const Probability& probability : part.probabilities) {
      EXPECT_LE(probability.lower, probability.upper);
    }
    if (limits.work == 0.0) {
      EXPECT_GT(part.left_out.probabilities, 0U);
      EXPECT_GT(part.left_out.leads, 0U);
    }
    decide(logits, part.tokens, unlimited);
    finish_survey(logits, part, wanted, unlimited);
    EXPECT_TRUE(part.left_out.nothing());
    for (std::size_t token = 0; token < logits.tokens; ++token) {
      EXPECT_EQ(part.tokens[token].answer, whole.tokens[token].answer) << token;
    }
    if (limits.work == 0.0) {
      for (std::size_t token = 0; token < logits.tokens; ++token) {
        EXPECT_EQ(part.tokens[token].lower, whole.tokens[token].lower) << token;
        EXPECT_EQ(part.tokens[token].upper, whole.tokens[token].upper) << token;
      }
    }
  }
}

TEST(Survey, InALargeVocabularyOnlyExtremeProbabilitiesAreComputed) {
  const Logits logits = random_head(1010, 100, NormKind::rms, 5, 0.0).logits();
  const SurveyOptions few{.nearest = 2, .asked = {17}};
  const Survey survey = surveyed(logits, few, {.threads = 1});
  EXPECT_EQ(survey.left_out.tokens, 0U);
  EXPECT_EQ(survey.left_out.probabilities, 0U);
  EXPECT_LE(survey.refined.size(), 5U);
  std::vector<std::size_t> expected = survey.nearest(2);
  expected.push_back(17);
  for (const std::size_t token : expected) {
    EXPECT_TRUE(std::binary_search(survey.refined.begin(), survey.refined.end(), token)) << token;
    const Probability& probability = survey.probabilities[token];
    EXPECT_LE(std::log(probability.upper) - std::log(probability.lower), 1.1e-3) << token;
  }
  // All others are bounded by their leads.
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    EXPECT_LE(survey.probabilities[token].lower, survey.probabilities[token].upper) << token;
  }
}

TEST(Survey, HasTheSameBitsForATeam) {
  const Logits logits = random_head(1100, 5, NormKind::layer, 3, 1.0).logits();
  const SurveyOptions wanted{.nearest = 7, .asked = {0, 500, 1099}};
  const Survey whole = surveyed(logits, wanted, {.threads = 1});
  EXPECT_GT(whole.with(Answer::no).size(), 64U);
  for (const std::size_t size : {std::size_t{2}, std::size_t{5}}) {
    ThreadTeam::run(size, [&](const Team& team) {
      const Survey shared = surveyed(logits, wanted, {.threads = 1, .team = &team});
      EXPECT_EQ(shared.refined, whole.refined);
      EXPECT_EQ(shared.sharp, whole.sharp);
      for (std::size_t token = 0; token < logits.tokens; ++token) {
        const TokenReach& ours = shared.tokens[token];
        const TokenReach& theirs = whole.tokens[token];
        EXPECT_EQ(ours.answer, theirs.answer) << token;
        EXPECT_EQ(ours.unbounded, theirs.unbounded) << token;
        EXPECT_EQ(ours.lower, theirs.lower) << token;
        EXPECT_EQ(ours.upper, theirs.upper) << token;
        EXPECT_EQ(ours.runner_up, theirs.runner_up) << token;
        EXPECT_EQ(ours.witness, theirs.witness) << token;
        EXPECT_EQ(ours.weights.size(), theirs.weights.size()) << token;
        EXPECT_EQ(shared.probabilities[token].lower, whole.probabilities[token].lower) << token;
        EXPECT_EQ(shared.probabilities[token].upper, whole.probabilities[token].upper) << token;
        EXPECT_EQ(shared.probabilities[token].point, whole.probabilities[token].point) << token;
      }
    });
  }
}

TEST(Survey, PointsOfProbabilitiesProveTheSameBoundsAgain) {
  const Logits logits = random_head(300, 6, NormKind::rms, 8, 0.4).logits();
  const std::vector<std::size_t> asked = {0, 7, 33, 299};
  const std::vector<Probability> found = largest_probabilities(logits, asked, {.threads = 1});
  std::vector<std::vector<double>> points;
  for (const Probability& probability : found) {
    points.push_back(probability.point);
    points.push_back(probability.tangent);
  }
  const std::vector<Probability> again = prove_probabilities(logits, asked, points, 1);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    EXPECT_EQ(again[i].lower, found[i].lower) << i;
    EXPECT_EQ(again[i].upper, found[i].upper) << i;
  }
  // Points other than maxima prove weaker bounds; points outside the ball prove none.
  for (std::vector<double>& point : points) {
    for (double& value : point) value *= -0.5;
  }
  const std::vector<Probability> worse = prove_probabilities(logits, asked, points, 1);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    EXPECT_LE(worse[i].lower, found[i].upper) << i;
    EXPECT_GE(worse[i].upper, found[i].lower) << i;
  }
  for (double& value : points[0]) value *= 1e6;
  EXPECT_LE(prove_probabilities(logits, asked, points, 1)[0].lower, found[0].upper);
}

}  // namespace
}  // namespace normscope::selectability
