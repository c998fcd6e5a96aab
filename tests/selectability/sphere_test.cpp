#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/selectability/reach.hpp>

// eps = 0: the norm gives points of the sphere only.
namespace normscope::selectability {
namespace {

using proof::Answer;

Logits head(NormKind kind, std::size_t width, const std::vector<double>& weights,
            const std::vector<double>& bias, double eps = 0.0) {
  const NormSpec norm{.kind = kind, .width = width, .eps = eps};
  return fold(norm, {weights.data(), weights.size() / width, width}, bias);
}

std::vector<TokenReach> decided_with_sphere(const Logits& logits) {
  std::vector<TokenReach> tokens;
  decide(logits, tokens, {.threads = 1});
  return tokens;
}

/// The lead of a token over all others, and its probability, at a point.
struct Standing {
  double lead = std::numeric_limits<double>::infinity();
  double probability = 0.0;
};

Standing stand(const Logits& logits, std::size_t token, const std::vector<double>& point) {
  std::vector<double> scores;
  for (std::size_t j = 0; j < logits.tokens; ++j) {
    double score = logits.offsets[j];
    for (std::size_t k = 0; k < logits.width; ++k) score += logits.rows[j * logits.width + k] * point[k];
    scores.push_back(score);
  }
  Standing result;
  double total = 0.0;
  for (std::size_t j = 0; j < logits.tokens; ++j) {
    total += std::exp(scores[j] - scores[token]);
    if (j != token) result.lead = std::min(result.lead, scores[token] - scores[j]);
  }
  result.probability = 1.0 / total;
  return result;
}

TEST(Sphere, AgreesWithBruteForceOverTheCircle) {
  constexpr int turns = 3600;
  int only_inside = 0;
  int within = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    std::vector<double> weights;
    std::vector<double> bias;
    const std::size_t count = 3 + seed % 8;
    for (std::size_t i = 0; i < 2 * count; ++i) weights.push_back(random.normal());
    for (std::size_t i = 0; i < count; ++i) bias.push_back(random.normal());
    // A token in the middle with an offset: its lead decreases outward.
    weights[0] = weights[1] = 0.0;
    bias[0] = 1.5;
    const Logits logits = head(NormKind::rms, 2, weights, bias);
    const Logits open = head(NormKind::rms, 2, weights, bias, 1e-5);
    const std::vector<TokenReach> tokens = decided_with_sphere(logits);
    std::vector<TokenReach> in_ball = decided_with_sphere(open);
    std::vector<std::size_t> all;
    for (std::size_t token = 0; token < count; ++token) all.push_back(token);
    sharpen(open, in_ball, all, {.threads = 1});
    const std::vector<Probability> chances = largest_probabilities(logits, all, {.threads = 1});
    for (std::size_t token = 0; token < count; ++token) {
      Standing best{-std::numeric_limits<double>::infinity(), 0.0};
      for (int turn = 0; turn < turns; ++turn) {
        const double angle = 2.0 * std::numbers::pi * turn / turns;
        const Standing here = stand(logits, token, {std::cos(angle), std::sin(angle)});
        best.lead = std::max(best.lead, here.lead);
        best.probability = std::max(best.probability, here.probability);
      }
      EXPECT_TRUE(verify(logits, token, tokens[token])) << seed << " " << token;
      EXPECT_LE(best.lead, tokens[token].upper + 1e-12);
      EXPECT_LE(best.probability, chances[token].upper + 1e-12);
      EXPECT_GE(best.probability, 0.99 * chances[token].lower - 1e-12) << seed << " " << token;
      EXPECT_GE(chances[token].lower, 0.9 * best.probability) << seed << " " << token;
      if (tokens[token].answer == Answer::yes) {
        EXPECT_GE(best.lead, tokens[token].lower - 0.01 * logits.scale) << seed << " " << token;
        const std::vector<double> point = witness(logits, token, tokens[token]);
        EXPECT_NEAR(std::hypot(point[0], point[1]), 1.0, 1e-9);
        EXPECT_GE(stand(logits, token, point).lead, tokens[token].lower - 1e-12);
        within += in_ball[token].lower > best.lead + 0.01 * logits.scale ? 1 : 0;
      } else {
        EXPECT_LE(best.lead, 1e-9) << seed << " " << token;
        EXPECT_EQ(tokens[token].only_inside, tokens[token].answer == Answer::undecided);
        only_inside += tokens[token].only_inside ? 1 : 0;
        EXPECT_EQ(tokens[token].only_inside, in_ball[token].answer == Answer::yes) << seed << " " << token;
      }
    }
  }
  EXPECT_GT(only_inside, 5);
  EXPECT_GT(within, 5);
}

TEST(Sphere, IgnoresIrrelevantDirections) {
  // More dimensions than differing tokens: points inside move to the sphere along the remaining ones.
  for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
    Random random(5);
    std::vector<double> weights;
    for (int i = 0; i < 6 * 12; ++i) weights.push_back(0.1 * random.normal());
    const Logits logits = head(kind, 12, weights, {3, 2, 2, 2, 2, 1.9});
    const std::vector<TokenReach> tokens = decided_with_sphere(logits);
    EXPECT_EQ(tokens[0].answer, Answer::yes);
    for (std::size_t token = 0; token < 6; ++token) {
      EXPECT_NE(tokens[token].answer, Answer::undecided) << token;
      EXPECT_TRUE(verify(logits, token, tokens[token])) << token;
    }
  }
}

TEST(Sphere, LargestLeadsAreThoseOfTheSphere) {
  std::size_t seen = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    std::vector<double> weights;
    std::vector<double> bias;
    const std::size_t count = 3 + seed % 6;
    for (std::size_t i = 0; i < 3 * count; ++i) weights.push_back(random.normal());
    for (std::size_t i = 0; i < count; ++i) bias.push_back(random.normal());
    // A token near the middle with an offset, whose lead is largest inside the ball.
    for (std::size_t i = 0; i < 3; ++i) weights[i] *= 0.05;
    bias[0] = 2.5;
    const Logits logits = head(NormKind::rms, 3, weights, bias);
    std::vector<TokenReach> tokens = decided_with_sphere(logits);
    std::vector<std::size_t> reachable;
    for (std::size_t token = 0; token < count; ++token) {
      if (tokens[token].answer == Answer::yes) reachable.push_back(token);
    }
    const std::vector<TokenReach> before = tokens;
    sharpen(logits, tokens, reachable, {.threads = 1});
    for (const std::size_t token : reachable) {
      ++seen;
      EXPECT_GE(tokens[token].lower, before[token].lower) << seed << " " << token;
      EXPECT_LE(tokens[token].upper, before[token].upper) << seed << " " << token;
      EXPECT_TRUE(verify(logits, token, tokens[token])) << seed << " " << token;
      const std::vector<double> point = witness(logits, token, tokens[token]);
      EXPECT_NEAR(std::hypot(point[0], point[1], point[2]), 1.0, 1e-9) << seed << " " << token;
      EXPECT_GE(stand(logits, token, point).lead, tokens[token].lower - 1e-12) << seed << " " << token;
    }
  }
  EXPECT_GT(seen, 60U);
}

// A token in the middle of others with an offset: paths from inside the ball to the sphere end at corners.
TEST(Sphere, EveryTokenIsProvedAmongEqualAndOppositeOnes) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Random random(seed);
    const std::size_t width = 3 + seed % 3;
    const std::size_t count = 4 + random.below(8);
    std::vector<double> weights;
    std::vector<double> bias;
    for (std::size_t i = 0; i < width * count; ++i) {
      weights.push_back(static_cast<double>(random.below(5)) - 2.0);
    }
    for (std::size_t i = 0; i < count; ++i) bias.push_back(0.5 * static_cast<double>(random.below(3)));
    for (std::size_t i = 0; i < width; ++i) weights[i] = 0.0;
    bias[0] = 0.5 + static_cast<double>(random.below(3));
    const NormKind kind = seed % 2 == 0 ? NormKind::rms : NormKind::layer;
    const Logits logits = head(kind, width, weights, bias);
    const std::vector<TokenReach> tokens = decided_with_sphere(logits);
    for (std::size_t token = 0; token < count; ++token) {
      EXPECT_TRUE(verify(logits, token, tokens[token])) << seed << " " << token;
      if (tokens[token].answer != Answer::yes) continue;
      const std::vector<double> point = witness(logits, token, tokens[token]);
      EXPECT_GE(stand(logits, token, point).lead, tokens[token].lower - 1e-12) << seed << " " << token;
    }
  }
}

TEST(Sphere, MoreDimensionsThanAxesAreTried) {
  Random random(5);
  std::vector<double> weights;
  for (int i = 0; i < 6 * 20; ++i) weights.push_back(0.1 * random.normal());
  const Logits logits = head(NormKind::rms, 20, weights, {3, 2, 2, 2, 2, 1.9});
  const std::vector<TokenReach> tokens = decided_with_sphere(logits);
  EXPECT_EQ(tokens[0].answer, Answer::yes);
  for (std::size_t token = 0; token < 6; ++token) EXPECT_TRUE(verify(logits, token, tokens[token])) << token;
}

TEST(Sphere, EqualTokensShareTheProbability) {
  const Logits logits = head(NormKind::rms, 3, std::vector<double>(9, 0.5), {});
  const std::vector<std::size_t> asked{0, 1, 2};
  for (const Probability& probability : largest_probabilities(logits, asked, {.threads = 1})) {
    EXPECT_LE(probability.lower, 1.0 / 3.0);
    EXPECT_NEAR(probability.upper, 1.0 / 3.0, 1e-12);
  }
}

TEST(Sphere, VerifyAsksForAPointOfTheSphere) {
  const Logits logits = head(NormKind::rms, 2, {0, 0, 1, 0, -1, 0, 0, 0.1}, {0.3, 0, 0, -5});
  std::vector<TokenReach> tokens = decided_with_sphere(logits);
  ASSERT_EQ(tokens[0].answer, Answer::yes);
  ASSERT_TRUE(verify(logits, 0, tokens[0]));
  // At the centre it leads by 0.3, but the centre is no output of the norm.
  tokens[0].witness = {0.0, 0.0};
  tokens[0].lower = 0.2;
  EXPECT_FALSE(verify(logits, 0, tokens[0]));
}

TEST(Sphere, TwoPointsAreRefused) {
  EXPECT_THROW(static_cast<void>(head(NormKind::layer, 1, {1, 2}, {})), Error);
  EXPECT_THROW(static_cast<void>(head(NormKind::layer, 2, {1, 2, 3, 5}, {})), Error);
  EXPECT_THROW(static_cast<void>(head(NormKind::rms, 1, {1, 2}, {})), Error);
  EXPECT_EQ(decided_with_sphere(head(NormKind::rms, 1, {1, 2}, {}, 1e-5))[0].answer, Answer::yes);
  EXPECT_EQ(decided_with_sphere(head(NormKind::layer, 1, {1, 2}, {}, 1e-5))[0].answer, Answer::no);
}

}  // namespace
}  // namespace normscope::selectability
