#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/selectability/reach.hpp>

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
    if (tokens[token].answer == proof::Answer::no) {
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

/// With these logits of 10⁹, the mean of the rows' rounding moves an ascent by more than the rows themselves
/// do.
TEST(Probability, PointsOfACenteringNormHaveNoMean) {
  const std::vector<double> weights{0x1.85e902d860aa6p+30,  -0x1.5fb7204f13d18p-50, -0x1.922e01b0c8aa7p+30,
                                    -0x1.a027eff0c7f31p-52, 0x1.3b30bab9e077fp+31,  0x1.d7848855bce85p-50,
                                    0x1.4326919361208p+29,  -0x1.76fd33a685373p-50, 0x1.c2c66e6cb6068p+28,
                                    -0x1.c97a7675728a6p-51};
  const Logits logits = fold({.kind = NormKind::layer, .width = 2, .eps = 1e-5}, {weights.data(), 5, 2}, {});
  const std::vector<Probability> found = largest_probabilities(logits, all_of(logits), {.threads = 1});
  for (const Probability& probability : found) {
    for (const std::vector<double>* point : {&probability.point, &probability.tangent}) {
      if (point->empty()) continue;
      EXPECT_LE(std::abs((*point)[0] + (*point)[1]), 0x1p-9 * std::abs((*point)[0]));
    }
    EXPECT_GE(probability.upper, probability.lower);
  }
}

TEST(Probability, IsNeverSubnormal) {
  // Tokens that another leads by 700 to 760 everywhere: their probabilities are about e^-720.
  const std::vector<double> weights{1.0, 1.0, -1.0, 1.0};
  for (double behind = 700.0; behind < 760.0; behind += 1.0) {
    const std::vector<double> bias{0.0, -behind, -behind, -2.0 * behind};
    const Logits logits =
        fold({.kind = NormKind::rms, .width = 1, .eps = 1e-5}, {weights.data(), 4, 1}, bias);
    for (const Probability& probability : largest_probabilities(logits, all_of(logits), {.threads = 1})) {
      EXPECT_TRUE(probability.lower == 0.0 || probability.lower >= std::numeric_limits<double>::min());
      EXPECT_GE(probability.upper, std::numeric_limits<double>::min());
      EXPECT_LE(probability.lower, probability.upper);
    }
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
