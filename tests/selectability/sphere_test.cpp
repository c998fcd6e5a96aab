#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/selectability/probability.hpp>
#include <normscope/selectability/reach.hpp>
#include <normscope/selectability/survey.hpp>

// eps = 0: the norm gives points of the sphere only.
namespace normscope::selectability {
namespace {

using convex::Answer;

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

TEST(Sphere, TwoPointsAreCheckedSeparately) {
  // Token 0 leads at the ball's centre alone, which eps = 0 leaves out.
  const std::vector<double> weights{0, 0, 1, -1, -1, 1};
  const std::vector<double> bias{0.1, 0, 0};
  const Logits open = head(NormKind::layer, 2, weights, bias, 1e-5);
  EXPECT_EQ(decided_with_sphere(open)[0].answer, Answer::yes);
  const Logits logits = head(NormKind::layer, 2, weights, bias);
  const std::vector<TokenReach> tokens = decided_with_sphere(logits);
  EXPECT_EQ(tokens[0].answer, Answer::no);
  EXPECT_EQ(tokens[0].unbounded, Answer::yes);
  EXPECT_NEAR(tokens[0].upper, 0.1 - 2.0, 1e-12);
  EXPECT_EQ(tokens[0].ends, (std::vector<std::size_t>{2, 1}));
  for (std::size_t token = 0; token < 3; ++token) EXPECT_TRUE(verify(logits, token, tokens[token])) << token;
  TokenReach forged = tokens[0];
  forged.ends = {1, 2};
  EXPECT_FALSE(verify(logits, 0, forged));
  forged.ends = {2};
  EXPECT_FALSE(verify(logits, 0, forged));
  EXPECT_EQ(sphere_points(logits).size(), 2U);
  const std::vector<std::size_t> asked{0};
  const Probability most = largest_probabilities(logits, asked, {.threads = 1})[0];
  const double exact = 1.0 / (1.0 + std::exp(1.9) + std::exp(-2.1));
  EXPECT_NEAR(most.upper, exact, 1e-12);
  EXPECT_NEAR(most.lower, exact, 1e-12);
  EXPECT_NEAR(largest_probabilities(open, asked, {.threads = 1})[0].upper,
              std::exp(0.1) / (std::exp(0.1) + 2), 1e-3);
}

TEST(Sphere, ALargeTokenAtOnePointDecidesNothingAtTheOther) {
  // The first two tokens differ by 1e-6 where the third, which is large, is far below them.
  for (const double large : {1e3, 1e6, 1e8, 1e10, 1e13, 1e15}) {
    const Logits layer = head(NormKind::layer, 2, {1, -1, 1 + 1e-6, -1 - 1e-6, large, -large}, {});
    const Logits rms = head(NormKind::rms, 1, {1, 1 + 1e-6, large}, {});
    for (const Logits& logits : {layer, rms}) {
      const std::vector<TokenReach> tokens = decided_with_sphere(logits);
      // The first token leads; from some size on the rounding of the logits hides it.
      EXPECT_EQ(tokens[0].answer, large < 1e9 ? Answer::yes : Answer::undecided) << large;
      EXPECT_NE(tokens[1].answer, Answer::yes) << large;
      EXPECT_EQ(tokens[2].answer, Answer::yes) << large;
      for (std::size_t token = 0; token < 3; ++token) {
        EXPECT_TRUE(verify(logits, token, tokens[token])) << large << " " << token;
      }
      TokenReach forged = tokens[0];
      forged.answer = Answer::no;
      if (forged.ends.empty()) forged.ends = {1, 2};
      EXPECT_FALSE(verify(logits, 0, forged)) << large;
      // Ends that are none prove nothing, whatever the bound.
      forged.upper = std::numeric_limits<double>::infinity();
      forged.ends = {7, 9};
      EXPECT_FALSE(verify(logits, 0, forged)) << large;
    }
  }
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
    const std::vector<TokenReach> in_ball = decided_with_sphere(open);
    std::vector<std::size_t> all;
    for (std::size_t token = 0; token < count; ++token) all.push_back(token);
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
        within += in_ball[token].lower > tokens[token].lower + 1e-9 ? 1 : 0;
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
    const std::size_t width = 2 + seed % 3;
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

TEST(Sphere, TwoPointsOfOneNumber) {
  // An rms norm of width 1 gives 1 or -1: the middle token leads at neither.
  const Logits logits = head(NormKind::rms, 1, {1, -1, 0.25}, {});
  const std::vector<TokenReach> tokens = decided_with_sphere(logits);
  EXPECT_EQ(tokens[0].answer, Answer::yes);
  EXPECT_EQ(tokens[2].answer, Answer::no);
  EXPECT_NEAR(tokens[2].upper, -0.75, 1e-12);
  ASSERT_EQ(tokens[2].ends.size(), 2U);
  EXPECT_TRUE(verify(logits, 2, tokens[2]));
  const auto accepts = [&](const std::vector<std::size_t>& ends) {
    TokenReach forged = tokens[2];
    forged.ends = ends;
    return verify(logits, 2, forged);
  };
  EXPECT_FALSE(accepts({tokens[2].ends[0]}));
  EXPECT_FALSE(accepts({2, tokens[2].ends[1]})) << "the token itself";
  EXPECT_FALSE(accepts({tokens[2].ends[0], 3})) << "no token";
  EXPECT_FALSE(accepts({tokens[2].ends[1], tokens[2].ends[0]}));
  // A sphere of more dimensions has more points.
  const Logits wide = head(NormKind::rms, 2, {1, 0, -1, 0, 0.25, 0}, {});
  TokenReach forged = decided_with_sphere(wide)[2];
  ASSERT_EQ(forged.answer, Answer::no);
  forged.ends = {0, 1};
  EXPECT_FALSE(verify(wide, 2, forged));
}

TEST(Sphere, EqualTokensLeadAtNoneOfTwoPoints) {
  const Logits logits = head(NormKind::rms, 1, {0.5, 0.5, 0.5}, {});
  const std::vector<TokenReach> tokens = decided_with_sphere(logits);
  for (std::size_t token = 0; token < 3; ++token) {
    EXPECT_EQ(tokens[token].answer, Answer::no);
    EXPECT_EQ(tokens[token].unbounded, Answer::no);
    ASSERT_EQ(tokens[token].unbounded_weights.size(), 1U);
    EXPECT_NE(tokens[token].unbounded_weights[0].id, token);
    EXPECT_LT(tokens[token].unbounded_weights[0].id, 3U) << "a token";
    EXPECT_TRUE(verify(logits, token, tokens[token]));
  }
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

TEST(Sphere, AConstantRowOfWidthOneIsRefused) {
  EXPECT_THROW(static_cast<void>(head(NormKind::layer, 1, {1, 2}, {})), Error);
  EXPECT_EQ(decided_with_sphere(head(NormKind::rms, 1, {1, 2}, {}))[0].answer, Answer::yes);
  EXPECT_EQ(decided_with_sphere(head(NormKind::layer, 1, {1, 2}, {}, 1e-5))[0].answer, Answer::no);
}

}  // namespace
}  // namespace normscope::selectability
