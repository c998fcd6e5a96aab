#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/selectability/probability.hpp>

namespace normscope::selectability {
namespace {

Logits random_logits(std::size_t tokens, std::size_t width, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> weights;
  std::vector<double> bias;
  for (std::size_t i = 0; i < tokens * width; ++i) weights.push_back(random.normal());
  for (std::size_t i = 0; i < tokens; ++i) bias.push_back(random.normal());
  return fold({.kind = NormKind::rms, .width = width}, {weights.data(), tokens, width}, bias);
}

std::vector<std::size_t> all_of(const Logits& logits) {
  std::vector<std::size_t> all(logits.tokens);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(Probability, LeadsBoundProbabilities) {
  const Logits logits = random_logits(80, 6, 3);
  std::vector<TokenReach> tokens;
  decide(logits, tokens, {.threads = 1});
  const std::vector<Probability> exact =
      largest_probabilities(logits, all_of(logits), {.gap = 1e-4, .threads = 1});
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    const Probability quick = probability_from_lead(tokens[token], logits.tokens);
    EXPECT_LE(quick.lower, exact[token].upper) << token;
    EXPECT_GE(quick.upper, exact[token].lower) << token;
    EXPECT_LE(exact[token].upper, exact[token].lower * 1.0002) << token;
    // A token that cannot lead has a probability of at most one half.
    if (tokens[token].answer == convex::Answer::no) {
      EXPECT_LE(exact[token].lower, 0.5);
    } else {
      EXPECT_GT(exact[token].upper, 1.0 / 80.0);
    }
  }
}

TEST(Probability, ThreadsDoNotChangeABit) {
  const Logits logits = random_logits(150, 5, 4);
  const std::vector<Probability> one = largest_probabilities(logits, all_of(logits), {.threads = 1});
  const std::vector<Probability> three = largest_probabilities(logits, all_of(logits), {.threads = 3});
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    EXPECT_EQ(one[token].lower, three[token].lower);
    EXPECT_EQ(one[token].upper, three[token].upper);
  }
}

TEST(Probability, SingleTokenHasProbabilityOne) {
  const Logits logits = random_logits(1, 3, 5);
  std::vector<TokenReach> tokens;
  decide(logits, tokens, {});
  EXPECT_EQ(probability_from_lead(tokens[0], 1).lower, 1.0);
}

}  // namespace
}  // namespace normscope::selectability
