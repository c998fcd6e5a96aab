#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/norm/norm.hpp>
#include <normscope/selectability/reach.hpp>

#include "heads.hpp"
#include "proof/mixed_sizes.hpp"

// Logits near the ends of the range of float64, and leads near its rounding.
namespace normscope::selectability {
namespace {

using proof::Answer;

TEST(Reach, EqualTokensHaveLeadZero) {
  Head head = random_head(5, 6, NormKind::rms, 3, 0.0);
  for (std::size_t token = 1; token < 5; ++token) {
    std::copy_n(head.weights.begin(), 6, head.weights.begin() + static_cast<std::ptrdiff_t>(6 * token));
  }
  const Logits logits = head.logits();
  for (const TokenReach& token : decided(logits)) {
    EXPECT_EQ(token.answer, Answer::no);
    EXPECT_LE(token.upper, 1e-12 * logits.scale);
    EXPECT_LE(token.upper, 0.0);
    EXPECT_TRUE(std::isfinite(token.lower));
  }
}

TEST(Reach, FoldedLogitsAreWithinTheirRounding) {
  // The common part of all tokens is a million times as large as their differences.
  Head head = random_head(9, 7, NormKind::layer, 5, 0.8);
  for (std::size_t i = 0; i < head.weights.size(); ++i)
    head.weights[i] += 1e6 * std::sin(1.0 + static_cast<double>(i % 7));
  for (double& value : head.bias) value += 1e6;
  const Logits logits = head.logits();
  const std::vector<double> x = normals(7, 9);
  std::vector<double> u(7);
  norm::forward({.kind = NormKind::layer, .width = 7, .eps = 0.0}, {x.data(), 1, 7}, {u.data(), 1, 7});
  for (std::size_t a = 0; a < 9; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      long double direct = static_cast<long double>(head.bias[a]) - head.bias[b];
      long double folded = static_cast<long double>(logits.offsets[a]) - logits.offsets[b];
      for (std::size_t i = 0; i < 7; ++i) {
        const long double weight =
            static_cast<long double>(head.weights[a * 7 + i]) - head.weights[b * 7 + i];
        direct += weight * (static_cast<long double>(head.norm.gain[i]) * u[i] + head.norm.bias[i]);
        folded += (static_cast<long double>(logits.rows[a * 7 + i]) - logits.rows[b * 7 + i]) * u[i] /
                  std::sqrt(7.0L);
      }
      // The point itself is rounded: a few units in its last place.
      const long double rounded = 64.0L * 0x1p-53L * static_cast<long double>(logits.scale);
      EXPECT_LE(std::abs(direct - folded), 2.0L * static_cast<long double>(logits.rounding) + rounded);
    }
  }
  EXPECT_LT(logits.rounding, 1e-12 * logits.scale);
}

TEST(Reach, LogitsOfAnySize) {
  const Head plain = random_head(40, 5, NormKind::rms, 31, 0.0);
  const std::vector<TokenReach> expected = decided(plain.logits());
  for (const int exponent : {-95, -50, 50, 95}) {
    Head head = plain;
    for (double& value : head.weights) value = std::scalbn(value, exponent);
    const Logits logits = head.logits();
    std::vector<TokenReach> tokens = decided(logits);
    std::vector<std::size_t> reachable;
    for (std::size_t token = 0; token < tokens.size(); ++token) {
      EXPECT_EQ(tokens[token].answer, expected[token].answer) << exponent << " " << token;
      EXPECT_TRUE(verify(logits, token, tokens[token])) << exponent << " " << token;
      EXPECT_TRUE(std::isfinite(tokens[token].lower) && std::isfinite(tokens[token].upper)) << exponent;
      EXPECT_NEAR(std::scalbn(tokens[token].lower, -exponent), expected[token].lower, 1e-12) << exponent;
      if (tokens[token].answer == Answer::yes) reachable.push_back(token);
    }
    sharpen(logits, tokens, reachable, {.threads = 1});
    for (const std::size_t token : reachable) {
      EXPECT_LE(tokens[token].upper - tokens[token].lower, 1e-6 * logits.scale) << exponent << " " << token;
    }
  }
  // Tokens of very different sizes: the error bounds of small ones do not depend on the large one.
  const Head mixed{.norm = {.kind = NormKind::layer, .width = 2}, .weights = {1e30, 0, 0, 1, 1, 1}};
  for (std::size_t token = 0; token < 3; ++token) {
    EXPECT_TRUE(verify(mixed.logits(), token, decided(mixed.logits())[token])) << token;
  }
  for (const double refused : {1.7e308, 1e31, 1e-31, 5e-324}) {
    const Head head{.norm = {.kind = NormKind::rms, .width = 2}, .weights = {refused, 0, -refused, 0}};
    EXPECT_THROW(static_cast<void>(head.logits()), Error) << refused;
  }
}

TEST(Reach, LeadsAndProbabilitiesAreOrderedForTokensOfManySizes) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const proof::MixedRows rows = proof::mixed_rows(seed);
    const NormSpec norm{.kind = NormKind::rms, .width = rows.width, .eps = seed % 2 == 0 ? 0.0 : 1e-5};
    std::optional<Logits> logits;
    try {
      logits = fold(norm, rows.view(), seed % 3 == 0 ? std::vector<double>{} : rows.offsets);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Argument) << seed << ": " << error.what();
      continue;
    }
    std::vector<TokenReach> tokens = decided(*logits);
    const std::vector<TokenReach> before = tokens;
    std::vector<bool> sharp;
    std::size_t worked = 0;
    static_cast<void>(sharpen_nearest(*logits, tokens, sharp, worked, 2, 4, {.threads = 1}));
    EXPECT_LE(worked, 4U) << seed;
    std::vector<std::size_t> asked(tokens.size());
    std::iota(asked.begin(), asked.end(), 0);
    const std::vector<Probability> chances = largest_probabilities(*logits, asked, {.threads = 1});
    for (std::size_t token = 0; token < tokens.size(); ++token) {
      EXPECT_GE(tokens[token].lower, before[token].lower) << seed << " " << token;
      EXPECT_LE(tokens[token].upper, before[token].upper) << seed << " " << token;
      EXPECT_LE(chances[token].lower, chances[token].upper) << seed << " " << token;
      EXPECT_TRUE(chances[token].lower >= 0.0 && chances[token].upper <= 1.0) << seed << " " << token;
    }
  }
}

// Among these are rows that longer ones make dependent, and common parts of which little remains.
TEST(Reach, EveryAnswerIsProvedForTokensOfManySizes) {
  std::vector<std::uint64_t> seeds{578,  606,  607,  608,  739,  740,  741, 1138,
                                   1154, 1155, 1156, 2368, 3440, 3804, 7137};
  for (std::uint64_t seed = 0; seed < 60; ++seed) seeds.push_back(seed);
  for (const std::uint64_t seed : seeds) {
    const proof::MixedRows rows = proof::mixed_rows(seed);
    Random random(7 * seed + 1);
    NormSpec norm{.width = rows.width};
    norm.eps = random.below(2) == 1 ? 0.0 : 1e-5;
    norm.kind = random.below(2) == 1 ? NormKind::rms : NormKind::layer;
    if (norm.width == 1 && norm.eps == 0.0) norm.kind = NormKind::rms;
    std::vector<double> bias;
    if (random.below(2) == 1) bias = rows.offsets;
    std::optional<Logits> logits;
    try {
      logits = fold(norm, rows.view(), bias);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::Argument) << seed << ": " << error.what();
      continue;
    }
    std::vector<TokenReach> tokens = decided(*logits);
    std::vector<std::size_t> reachable;
    for (std::size_t token = 0; token < tokens.size(); ++token) {
      EXPECT_TRUE(verify(*logits, token, tokens[token])) << seed << " " << token;
      if (tokens[token].answer == Answer::yes) reachable.push_back(token);
    }
    sharpen(*logits, tokens, reachable, {.threads = 1});
    for (const std::size_t token : reachable) {
      EXPECT_TRUE(verify(*logits, token, tokens[token])) << seed << " " << token;
    }
  }
}

TEST(Reach, ALargeTokenDoesNotMakeOthersUnreachable) {
  for (const double large : {1e6, 1e13, 1e20, 1e29}) {
    for (const double eps : {1e-5, 0.0}) {
      for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
        const Head head{.norm = {.kind = kind, .width = 3, .eps = eps},
                        .weights = {large, 0, 0, 0, 1, 0, 1, 1, 0, -2, 1, 1, 0, 0, 0}};
        const Logits logits = head.logits();
        const std::vector<TokenReach> tokens = decided(logits);
        for (std::size_t token = 0; token < head.tokens(); ++token) {
          EXPECT_TRUE(verify(logits, token, tokens[token])) << large << " " << token;
        }
        // Token 1 leads where u points to (-1, 4, -3), token 3 at (-1, 2, -1).
        EXPECT_EQ(tokens[0].answer, Answer::yes) << large;
        EXPECT_NE(tokens[1].answer, Answer::no) << large;
        EXPECT_NE(tokens[1].unbounded, Answer::no) << large;
        EXPECT_NE(tokens[3].answer, Answer::no) << large;
      }
    }
  }
  // Equal tokens beside a large one still never lead.
  const Head duplicates{.norm = {.kind = NormKind::rms, .width = 2}, .weights = {1e30, 0, 0, 1, 0, 1}};
  EXPECT_EQ(decided(duplicates.logits())[1].answer, Answer::no);
}

TEST(Reach, LeadsNearZeroAreDecided) {
  // A token slightly inside or outside the hull of others; an exact basis decides which.
  int narrowly_decided = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Head head = random_head(9, 4, NormKind::rms, seed, seed % 2 == 0 ? 0.0 : 1.0);
    head.norm.gain = {};
    head.norm.bias = {};
    Random random(seed);
    plant(head, 0, {1, 2, 3, 4}, random);
    if (!head.bias.empty()) head.bias[0] = 0.25 * (head.bias[1] + head.bias[2] + head.bias[3] + head.bias[4]);
    const double tiny = std::pow(10.0, -7.0 - static_cast<double>(seed % 6));
    for (std::size_t i = 0; i < 4; ++i) head.weights[i] += tiny * random.normal();
    const Logits logits = head.logits();
    const TokenReach token = decided(logits)[0];
    EXPECT_NE(token.answer, Answer::undecided) << seed << ": " << token.lower << " to " << token.upper;
    EXPECT_TRUE(verify(logits, 0, token)) << seed;
    narrowly_decided += std::abs(token.upper) < 1e-6 * logits.scale ? 1 : 0;
  }
  EXPECT_GT(narrowly_decided, 10);
}

}  // namespace
}  // namespace normscope::selectability
