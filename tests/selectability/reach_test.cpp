#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/norm/norm.hpp>
#include <normscope/selectability/reach.hpp>

#include "heads.hpp"
#include "support/thread_team.hpp"

namespace normscope::selectability {
namespace {

using proof::Answer;

TEST(Reach, LogitsAreThoseAfterTheNorm) {
  for (const NormKind kind : {NormKind::layer, NormKind::rms, NormKind::spherical}) {
    Head head = random_head(7, 12, kind, 5, 0.7);
    head.norm.eps = 0.0;
    const Logits logits = head.logits();
    const std::vector<double> x = normals(12, 9);
    std::vector<double> h(12);
    norm::forward(head.norm, {x.data(), 1, 12}, {h.data(), 1, 12});
    // The point of the ball is the output of the norm without gain and bias, divided by its radius.
    std::vector<double> u(12);
    norm::forward({.kind = kind, .width = 12, .eps = 0.0}, {x.data(), 1, 12}, {u.data(), 1, 12});
    std::vector<double> direct;
    std::vector<double> folded;
    for (std::size_t token = 0; token < 7; ++token) {
      double a = head.bias[token];
      double b = logits.offsets[token];
      for (std::size_t i = 0; i < 12; ++i) {
        a += head.weights[token * 12 + i] * h[i];
        b += logits.rows[token * 12 + i] * u[i] / head.norm.radius();
      }
      direct.push_back(a);
      folded.push_back(b);
    }
    for (std::size_t token = 1; token < 7; ++token) {
      EXPECT_NEAR(direct[token] - direct[0], folded[token] - folded[0], 1e-13);
    }
  }
}

TEST(Reach, ToleranceOverrulesNoPointWhereATokenLeads) {
  const double high = std::sqrt(0.75);
  // A triangle, a point 0.01 outside of each side, which leads by that much in its own direction, and the
  // middle.
  const std::vector<double> rows{1.0,         0.0,   -0.5, high,       -0.5,         -high, 0.51 * 0.5,
                                 0.51 * high, -0.51, 0.0,  0.51 * 0.5, -0.51 * high, 0.0,   0.0};
  const Logits logits = fold({.kind = NormKind::rms, .width = 2}, {rows.data(), 7, 2}, {});
  for (const double tolerance : {1e-12, 0.3}) {
    std::vector<TokenReach> tokens;
    decide(logits, tokens, {.threads = 1, .tolerance = tolerance});
    sharpen(logits, tokens, {3}, {.threads = 1, .tolerance = tolerance});
    for (std::size_t token = 0; token < 6; ++token) EXPECT_EQ(tokens[token].answer, Answer::yes);
    EXPECT_GT(tokens[3].lower, 0.0);
    EXPECT_LT(tokens[3].upper, 0.011 * logits.scale);
    EXPECT_EQ(tokens[6].answer, Answer::no);
  }
  std::size_t between = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Logits head = random_head(60, 4, NormKind::layer, 100 * seed, 0.5).logits();
    const std::vector<TokenReach> fine = decided(head);
    std::vector<TokenReach> coarse;
    const double tolerance = 0.3;
    decide(head, coarse, {.threads = 1, .tolerance = tolerance});
    for (std::size_t token = 0; token < fine.size(); ++token) {
      EXPECT_TRUE(verify(head, token, coarse[token], tolerance));
      const bool is_none = coarse[token].answer == Answer::no;
      EXPECT_TRUE(is_none || fine[token].answer == Answer::yes);
      EXPECT_TRUE(!is_none || coarse[token].upper <= tolerance * head.scale);
      EXPECT_TRUE(!is_none || fine[token].lower <= tolerance * head.scale);
      between += is_none && fine[token].answer == Answer::yes ? 1U : 0U;
    }
  }
  EXPECT_GT(between, 0U);  // as the comment of `tolerance` says
}

TEST(Reach, PlantedTokensAndNoOthersAreFound) {
  struct Size {
    std::size_t tokens;
    std::size_t width;
  };
  for (const Size size : {Size{40, 16}, Size{300, 64}, Size{500, 320}}) {
    for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
      Head head = random_head(size.tokens, size.width, kind, size.width, 0.0);
      Random random(size.tokens);
      const std::size_t planted = size.tokens / 20;
      for (std::size_t token = 0; token < planted; ++token) {
        std::set<std::size_t> carriers;
        while (carriers.size() < 2 + token % 9)
          carriers.insert(planted + random.below(size.tokens - planted));
        plant(head, token, {carriers.begin(), carriers.end()}, random);
      }
      const Logits logits = head.logits();
      const std::vector<TokenReach> tokens = decided(logits);
      for (std::size_t token = 0; token < size.tokens; ++token) {
        EXPECT_EQ(to_string(tokens[token].answer), token < planted ? "no" : "yes") << token;
        EXPECT_EQ(tokens[token].answer, tokens[token].unbounded);
      }
      EXPECT_EQ(all_unproved(logits, tokens), std::vector<std::size_t>{});
    }
  }
}

TEST(Reach, TheBallChangesTheAnswer) {
  // Two features, RMS, radius sqrt 2. Token 2 leads only beyond length 3.
  Head head;
  head.norm = {.kind = NormKind::rms, .width = 2};
  head.weights = {1, 0, -1, 0, 0, 1};
  head.bias = {0, 0, -3};
  const std::vector<TokenReach> tokens = decided(head.logits());
  EXPECT_EQ(tokens[0].answer, Answer::yes);
  EXPECT_EQ(tokens[1].answer, Answer::yes);
  EXPECT_EQ(tokens[2].answer, Answer::no);
  EXPECT_LE(tokens[2].upper, 0.0);
  EXPECT_GE(tokens[2].upper, std::sqrt(2.0) - 3.0);
  EXPECT_EQ(tokens[2].unbounded, Answer::yes);
  EXPECT_TRUE(verify(head.logits(), 2, tokens[2]));
  TokenReach elsewhere = tokens[2];
  elsewhere.unbounded_witness = {0.5, 0.0, 0.5};
  EXPECT_FALSE(verify(head.logits(), 2, elsewhere));
  // With a smaller offset the ball is enough.
  head.bias = {0, 0, -1};
  EXPECT_EQ(decided(head.logits())[2].answer, Answer::yes);
  // In the middle of the others and below them, it leads nowhere.
  head.weights = {1, 0, -1, 0, 0, 0};
  head.bias = {0, 0, -0.5};
  const TokenReach nowhere = decided(head.logits())[2];
  EXPECT_EQ(nowhere.answer, Answer::no);
  EXPECT_EQ(nowhere.unbounded, Answer::no);
  EXPECT_TRUE(verify(head.logits(), 2, nowhere));
  // Between the others it leads from 5 to 10 along the first feature, outside the ball; or from 5 to 3, so
  // nowhere.
  head.weights = {0, 0, 1, 0, -1, 0};
  head.bias = {0, -10, 5};
  EXPECT_EQ(decided(head.logits())[0].answer, Answer::no);
  EXPECT_EQ(decided(head.logits())[0].unbounded, Answer::yes);
  head.bias = {0, -3, 5};
  EXPECT_EQ(decided(head.logits())[0].unbounded, Answer::no);
}

TEST(Reach, WithoutABiasTheSphereDecidesAlike) {
  const Head head = random_head(60, 4, NormKind::rms, 21, 0.0);
  const Logits logits = head.logits();
  const std::vector<TokenReach> tokens = decided(logits);
  std::size_t seen = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].answer != Answer::yes) continue;
    ++seen;
    const std::vector<double> point = witness(logits, i, tokens[i]);
    double square = 0.0;
    for (const double value : point) square += value * value;
    double own = 0.0, other = -INFINITY;
    for (std::size_t j = 0; j < tokens.size(); ++j) {
      double score = logits.offsets[j];
      for (std::size_t k = 0; k < logits.width; ++k)
        score += logits.rows[j * logits.width + k] * point[k] / std::sqrt(square);
      if (j == i) own = score;
      if (j != i) other = std::max(other, score);
    }
    EXPECT_GE(own - other, tokens[i].lower - 1e-12 * logits.scale) << i;
  }
  EXPECT_GT(seen, 10u);
}

TEST(Reach, DuplicatesAreUnreachable) {
  Head head = random_head(30, 24, NormKind::layer, 3, 0.5);
  std::copy_n(head.weights.begin() + 4 * 24, 24, head.weights.begin() + 9 * 24);
  head.bias[9] = head.bias[4];
  const Logits logits = head.logits();
  std::vector<TokenReach> tokens = decided(logits);
  for (const std::size_t duplicate : {4, 9}) {
    EXPECT_EQ(tokens[duplicate].answer, Answer::no);
    EXPECT_EQ(tokens[duplicate].unbounded, Answer::no);
    ASSERT_EQ(tokens[duplicate].weights.size(), 1);
    EXPECT_EQ(tokens[duplicate].weights[0].id, 13 - duplicate);
    EXPECT_TRUE(verify(logits, duplicate, tokens[duplicate]));
  }
  // The token with the larger bias has the larger logit everywhere.
  head.bias[9] += 0.25;
  tokens = decided(head.logits());
  EXPECT_EQ(tokens[4].answer, Answer::no);
  EXPECT_EQ(tokens[9].answer, Answer::yes);
}

TEST(Reach, DegenerateHeads) {
  Head one = random_head(1, 3, NormKind::layer, 1, 1.0);
  EXPECT_EQ(decided(one.logits())[0].answer, Answer::yes);
  // The output of a layer norm of width 1 is its bias.
  Head narrow = random_head(3, 1, NormKind::layer, 1, 1.0);
  narrow.bias = {0, 5, 1};
  narrow.norm.bias = {};
  std::vector<TokenReach> tokens = decided(narrow.logits());
  EXPECT_EQ(tokens[0].answer, Answer::no);
  EXPECT_EQ(tokens[1].answer, Answer::yes);
  // Gains of zero and a rank below the width.
  Head flat = random_head(12, 8, NormKind::rms, 4, 0.0);
  for (std::size_t i = 1; i < 8; ++i) flat.norm.gain[i] = 0.0;
  tokens = decided(flat.logits());
  EXPECT_EQ(std::count_if(tokens.begin(), tokens.end(),
                          [](const TokenReach& token) { return token.answer == Answer::yes; }),
            2);
  // No tokens.
  Head zero = random_head(4, 5, NormKind::rms, 4, 0.0);
  std::fill(zero.weights.begin(), zero.weights.end(), 0.0);
  for (const TokenReach& token : decided(zero.logits())) EXPECT_EQ(token.answer, Answer::no);
}

/// Whether the token leads by more than `lead` at one of many points of the disc.
bool leads_somewhere(const Logits& logits, std::size_t token, double lead) {
  constexpr int turns = 720;
  for (int turn = 0; turn < turns; ++turn) {
    const double angle = 2.0 * std::numbers::pi * turn / turns;
    for (const double radius : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t other = 0; other < logits.tokens; ++other) {
        if (other == token) continue;
        const double across = logits.rows[2 * token] - logits.rows[2 * other];
        const double along = logits.rows[2 * token + 1] - logits.rows[2 * other + 1];
        least = std::min(least, radius * (across * std::cos(angle) + along * std::sin(angle)) +
                                    logits.offsets[token] - logits.offsets[other]);
      }
      if (least > lead) return true;
    }
  }
  return false;
}

TEST(Reach, AgreesWithBruteForceOverTheDisc) {
  int unreachable = 0;
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    const Head head = random_head(3 + seed % 20, 2, NormKind::rms, seed, seed % 3 == 0 ? 0.0 : 0.5);
    const Logits logits = head.logits();
    const std::vector<TokenReach> tokens = decided(logits);
    for (std::size_t token = 0; token < logits.tokens; ++token) {
      ASSERT_NE(tokens[token].answer, Answer::undecided);
      unreachable += tokens[token].answer == Answer::no ? 1 : 0;
      if (tokens[token].answer == Answer::no) {
        EXPECT_FALSE(leads_somewhere(logits, token, 1e-9));
      } else if (tokens[token].lower > 0.05 * logits.scale) {
        EXPECT_TRUE(leads_somewhere(logits, token, 0.0));
      }
    }
  }
  EXPECT_GT(unreachable, 50);
}

RC_GTEST_PROP(Reach, EveryAnswerIsProved, (std::uint64_t seed)) {
  Random random(seed);
  const NormKind kind = random.below(2) == 0 ? NormKind::layer : NormKind::rms;
  const std::size_t width = 2 + random.below(8);
  Head head = random_head(2 + random.below(60), width, kind, seed, random.below(2) == 0 ? 0.0 : 1.0);
  if (random.below(3) == 0) {
    for (double& value : head.weights) value = std::round(value);
    for (double& value : head.bias) value = std::round(value);
    head.norm.gain = {};
    head.norm.bias = {};
  }
  const Logits logits = head.logits();
  const std::vector<TokenReach> tokens = decided(logits);
  // Ties are judged by the sizes of the other tokens, which may be 0 where logits do not depend on the input.
  const bool depends =
      std::any_of(logits.rows.begin(), logits.rows.end(), [](double value) { return value != 0.0; });
  for (std::size_t token = 0; token < logits.tokens; ++token) {
    RC_ASSERT(tokens[token].done);
    RC_ASSERT(tokens[token].answer != Answer::undecided);
    RC_ASSERT(tokens[token].unbounded != Answer::undecided || !depends);
    RC_ASSERT(verify(logits, token, tokens[token]));
    RC_ASSERT(tokens[token].answer != Answer::yes || tokens[token].unbounded == Answer::yes);
  }
}

TEST(Reach, LargestLeadsAreBetweenNarrowBounds) {
  for (const double bias : {0.0, 0.5}) {
    const Logits logits = random_head(120, 10, NormKind::layer, 12, bias).logits();
    std::vector<TokenReach> tokens = decided(logits);
    std::vector<std::size_t> reachable;
    for (std::size_t token = 0; token < tokens.size(); ++token) {
      if (tokens[token].answer == Answer::yes) reachable.push_back(token);
    }
    ASSERT_GT(reachable.size(), 10);
    sharpen(logits, tokens, reachable, {.threads = 1});
    for (const std::size_t token : reachable) {
      EXPECT_LE(tokens[token].upper - tokens[token].lower, 1e-6 * logits.scale) << token;
      EXPECT_GE(tokens[token].upper, tokens[token].lower);
      EXPECT_TRUE(verify(logits, token, tokens[token])) << token;
    }
  }
}

TEST(Reach, ThreadsDoNotChangeABit) {
  const Head head = random_head(1500, 6, NormKind::layer, 8, 0.3);
  const Logits logits = head.logits();
  const std::vector<TokenReach> one = decided(logits, 1);
  const std::vector<TokenReach> four = decided(logits, 4);
  for (std::size_t token = 0; token < one.size(); ++token) {
    EXPECT_EQ(one[token].answer, four[token].answer);
    EXPECT_EQ(one[token].lower, four[token].lower);
    EXPECT_EQ(one[token].upper, four[token].upper);
    EXPECT_EQ(one[token].witness, four[token].witness);
  }
}

/// Rows whose lengths differ, so that many tokens do not lead in the direction of their own row.
Logits of_many_lengths(std::size_t tokens, std::size_t width, double bias) {
  Head head = random_head(tokens, width, NormKind::rms, 12, bias);
  Random random(13);
  for (std::size_t token = 0; token < tokens; ++token) {
    const double length = std::exp(0.7 * random.normal());
    for (std::size_t i = 0; i < width; ++i) head.weights[token * width + i] *= length;
  }
  return head.logits();
}

TEST(Reach, TokensOfManyLengthsAreDecidedAsByOneProblemEach) {
  for (const double bias : {0.0, 0.5}) {
    const Logits logits = of_many_lengths(1200, 24, bias);
    const std::vector<TokenReach> tokens = decided(logits);
    EXPECT_EQ(all_unproved(logits, tokens), std::vector<std::size_t>());
    std::size_t elsewhere = 0;
    std::size_t never = 0;
    for (std::size_t token = 0; token < logits.tokens; ++token) {
      if (tokens[token].answer == Answer::yes && tokens[token].witness.empty()) continue;
      ++elsewhere;
      never += tokens[token].answer == Answer::no ? 1U : 0U;
      if (elsewhere % 8 != 0) continue;
      std::vector<double> rows;
      std::vector<double> offsets;
      for (std::size_t other = 0; other < logits.tokens; ++other) {
        if (other == token) continue;
        for (std::size_t i = 0; i < logits.width; ++i) {
          rows.push_back(logits.view().row(token)[i] - logits.view().row(other)[i]);
        }
        offsets.push_back(logits.offsets[token] - logits.offsets[other]);
      }
      const proof::BallMargin margin =
          proof::largest_margin({rows.data(), logits.tokens - 1, logits.width}, offsets);
      EXPECT_EQ(tokens[token].answer, margin.answer) << token;
      EXPECT_LE(tokens[token].lower, margin.upper + 1e-9 * logits.scale) << token;
      EXPECT_GE(tokens[token].upper, margin.lower - 1e-9 * logits.scale) << token;
    }
    EXPECT_GT(elsewhere - never, 100U);
    EXPECT_GT(never, 20U);
  }
}

TEST(Reach, WhatIsDecidedAlreadyChangesNoBitOfTheOthers) {
  const Logits logits = of_many_lengths(800, 24, 0.0);
  const std::vector<TokenReach> all = decided(logits);
  std::vector<TokenReach> some = all;
  Random random(1);
  for (TokenReach& token : some) {
    if (random.below(3) == 0) token = {};
  }
  decide(logits, some, {.threads = 3});
  for (std::size_t token = 0; token < all.size(); ++token) {
    EXPECT_EQ(all[token].answer, some[token].answer);
    EXPECT_EQ(all[token].lower, some[token].lower);
    EXPECT_EQ(all[token].upper, some[token].upper);
    EXPECT_EQ(all[token].witness, some[token].witness);
  }
}

TEST(Reach, ResumesFromDecidedTokens) {
  const Logits logits = random_head(600, 5, NormKind::rms, 2, 0.4).logits();
  std::vector<TokenReach> tokens;
  int reports = 0;
  const Progress impatient(
      [&](std::string_view what, std::size_t, std::size_t) { return what == "screen" || ++reports < 3; });
  EXPECT_THROW(decide(logits, tokens, {.threads = 1, .progress = impatient}), Error);
  const auto done = [&] {
    return std::count_if(tokens.begin(), tokens.end(), [](const TokenReach& token) { return token.done; });
  };
  EXPECT_GT(done(), 0);
  EXPECT_LT(done(), 600);
  decide(logits, tokens, {.threads = 1});
  EXPECT_EQ(done(), 600);
  const std::vector<TokenReach> whole = decided(logits);
  for (std::size_t token = 0; token < whole.size(); ++token) {
    EXPECT_EQ(whole[token].answer, tokens[token].answer);
    EXPECT_EQ(whole[token].lower, tokens[token].lower);
  }
}

TEST(Reach, ForgedProofsAreFound) {
  for (const double bias : {0.0, 2.0}) {
    const Logits logits = random_head(40, 3, NormKind::rms, 6, bias).logits();
    std::vector<TokenReach> tokens = decided(logits);
    std::vector<std::size_t> reachable;
    for (std::size_t token = 0; token < tokens.size(); ++token) {
      if (tokens[token].answer == Answer::yes) reachable.push_back(token);
    }
    sharpen(logits, tokens, reachable, {.threads = 1});
    EXPECT_EQ(all_unproved(logits, tokens), std::vector<std::size_t>{});
    const auto found = [&](std::size_t token, const auto& forge) {
      TokenReach forged = tokens[token];
      forge(forged);
      return !verify(logits, token, forged);
    };
    for (std::size_t token = 0; token < tokens.size(); ++token) {
      const bool reaches = tokens[token].answer == Answer::yes;
      EXPECT_TRUE(
          found(token, [&](TokenReach& forged) { forged.answer = reaches ? Answer::no : Answer::yes; }));
      // Both are known to 1e-6 of the scale after sharpening; a lead of a planted one, to rounding.
      EXPECT_TRUE(found(token, [&](TokenReach& forged) { forged.upper -= 2e-6 * logits.scale; })) << token;
      if (reaches) {
        EXPECT_TRUE(found(token, [&](TokenReach& forged) { forged.lower += 2e-6 * logits.scale; })) << token;
        EXPECT_TRUE(found(token, [&](TokenReach& forged) { forged.unbounded = Answer::no; }));
        EXPECT_TRUE(found(token, [&](TokenReach& forged) { forged.witness = {1.0, 1.0, 1.0}; }));
      } else {
        EXPECT_TRUE(found(token, [&](TokenReach& forged) { forged.weights[0].id = token; }));
        EXPECT_TRUE(found(token, [&](TokenReach& forged) { forged.weights[0].weight = -1.0; }));
        EXPECT_TRUE(found(token, [&](TokenReach& forged) {
          forged.unbounded = forged.unbounded == Answer::yes ? Answer::no : Answer::yes;
        }));
      }
    }
  }
}

TEST(Reach, ForgedPointsProveNothing) {
  const Logits logits = random_head(40, 3, NormKind::rms, 6, 2.0).logits();
  const std::vector<TokenReach> tokens = decided(logits);
  const auto accepts = [&](std::size_t token, const auto& forge) {
    TokenReach forged = tokens[token];
    forge(forged);
    return verify(logits, token, forged);
  };
  std::size_t argmaxable = 0;
  for (std::size_t token = 0; token < tokens.size(); ++token) {
    ASSERT_TRUE(accepts(token, [](TokenReach&) {})) << token;
    if (tokens[token].answer == Answer::yes) {
      EXPECT_FALSE(accepts(token, [](TokenReach& t) { t.witness = {0.1, 0.1}; })) << token;
      EXPECT_FALSE(accepts(token, [](TokenReach& t) { t.witness.assign(4, 0.1); })) << token;
      EXPECT_FALSE(accepts(token, [](TokenReach& t) { t.witness.assign(3, std::nan("")); })) << token;
    } else if (tokens[token].unbounded == Answer::yes) {
      ++argmaxable;
      EXPECT_FALSE(accepts(token, [](TokenReach& t) { t.unbounded_witness.pop_back(); })) << token;
      EXPECT_FALSE(accepts(token, [](TokenReach& t) {
        for (double& value : t.unbounded_witness) value *= 2.0;
      })) << token;
      EXPECT_TRUE(accepts(token, [](TokenReach& t) { t.unbounded = Answer::undecided; })) << token;
    }
  }
  EXPECT_GT(argmaxable, 0U);
}

TEST(Reach, TheOnlyTokenAlwaysLeads) {
  const Logits logits = random_head(1, 3, NormKind::layer, 1, 1.0).logits();
  std::vector<TokenReach> tokens = decided(logits);
  EXPECT_TRUE(verify(logits, 0, tokens[0]));
  const TokenReach before = tokens[0];
  sharpen(logits, tokens, {0}, {.threads = 1});
  EXPECT_EQ(tokens[0].lower, before.lower);
  std::vector<bool> sharp;
  std::size_t worked = 0;
  EXPECT_EQ(sharpen_nearest(logits, tokens, sharp, worked, 1, 1, {.threads = 1}), 0U);
  TokenReach forged = before;
  forged.answer = Answer::no;
  EXPECT_FALSE(verify(logits, 0, forged));
  forged = before;
  forged.unbounded = Answer::no;
  EXPECT_FALSE(verify(logits, 0, forged));
}

TEST(Reach, TheNearestTokensTakeNoMoreWorkThanAllowed) {
  const Logits logits = random_head(150, 6, NormKind::rms, 3, 0.5).logits();
  std::vector<TokenReach> tokens = decided(logits);
  const std::vector<TokenReach> before = tokens;
  std::vector<bool> sharp;
  std::size_t worked = 0;
  const std::size_t left = sharpen_nearest(logits, tokens, sharp, worked, 5, 2, {.threads = 1});
  EXPECT_EQ(worked, 2U);
  EXPECT_GT(left, 0U);
  EXPECT_LE(std::count(sharp.begin(), sharp.end(), true), 2);
  for (std::size_t token = 0; token < tokens.size(); ++token) {
    EXPECT_GE(tokens[token].lower, before[token].lower) << token;
    EXPECT_LE(tokens[token].upper, before[token].upper) << token;
  }
  EXPECT_EQ(all_unproved(logits, tokens), std::vector<std::size_t>{});
  // With more work the rest follows.
  EXPECT_EQ(sharpen_nearest(logits, tokens, sharp, worked, 5, 1000, {.threads = 1}), 0U);
  EXPECT_GE(std::count(sharp.begin(), sharp.end(), true), 5);
}

TEST(Reach, ATeamScreensTheSameTokens) {
  Head head = random_head(2600, 40, NormKind::rms, 4, 0.0);
  // Two equal tokens far apart: which of them is the runner-up of others does not depend on who saw it first.
  for (const std::size_t first : {std::size_t{3}, std::size_t{700}}) {
    std::copy_n(head.weights.begin() + static_cast<std::ptrdiff_t>(first * 40), 40,
                head.weights.begin() + static_cast<std::ptrdiff_t>((first + 1800) * 40));
  }
  // A shorter token in the direction of two of them, between both in the order of blocks.
  for (std::size_t i = 0; i < 40; ++i) {
    head.weights[1600 * 40 + i] = head.weights[700 * 40 + i];
    head.weights[700 * 40 + i] = head.weights[2500 * 40 + i] = 4.0 * head.weights[1600 * 40 + i];
  }
  const Logits logits = head.logits();
  // The screen alone.
  const ReachOptions options{.threads = 1, .work = 0.0};
  std::vector<TokenReach> alone;
  decide(logits, alone, options);
  EXPECT_TRUE(alone[0].done);
  EXPECT_EQ(alone[1600].runner_up, 700U);
  for (const std::size_t size : {std::size_t{2}, std::size_t{3}}) {
    ThreadTeam::run(size, [&](const Team& team) {
      std::vector<TokenReach> tokens;
      ReachOptions shared = options;
      shared.team = &team;
      decide(logits, tokens, shared);
      for (std::size_t token = 0; token < tokens.size(); ++token) {
        EXPECT_EQ(tokens[token].answer, alone[token].answer) << token;
        EXPECT_EQ(tokens[token].runner_up, alone[token].runner_up) << token;
        EXPECT_EQ(tokens[token].lower, alone[token].lower) << token;
      }
    });
  }
}

TEST(Reach, BadInputIsNamed) {
  Head head = random_head(4, 6, NormKind::layer, 1, 1.0);
  head.bias.pop_back();
  EXPECT_THROW(static_cast<void>(head.logits()), Error);
  head = random_head(4, 6, NormKind::layer, 1, 1.0);
  head.weights[3] = std::nan("");
  EXPECT_THROW(static_cast<void>(head.logits()), Error);
  head = random_head(4, 6, NormKind::layer, 1, 1.0);
  head.norm.groups = 2;
  EXPECT_THROW(static_cast<void>(head.logits()), Error);
  const auto message = [](const NormSpec& norm, MatrixView<const double> weights,
                          const std::vector<double>& bias, ErrorCode code) -> std::string {
    try {
      static_cast<void>(fold(norm, weights, bias));
      return "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
  };
  head = random_head(4, 6, NormKind::layer, 1, 1.0);
  const double* const weights = head.weights.data();
  for (const MatrixView<const double>& shape :
       {MatrixView<const double>(weights, 0, 6), MatrixView<const double>(weights, 4, 5)}) {
    EXPECT_NE(message(head.norm, shape, {}, ErrorCode::Shape).find("expected tokens x 6"), std::string::npos);
  }
  head.bias[2] = std::numeric_limits<double>::infinity();
  EXPECT_NE(message(head.norm, {weights, 4, 6}, head.bias, ErrorCode::Argument).find("token 2 has a weight"),
            std::string::npos);
  // Products with the norm's bias cancel, but each is near the largest double.
  const std::vector<double> opposite{1e108, -1e108, -1e108, 1e108};
  const NormSpec shifted{.kind = NormKind::rms, .width = 2, .bias = {1.5e200, 1.5e200}};
  EXPECT_NE(message(shifted, {opposite.data(), 2, 2}, {}, ErrorCode::Argument).find("logits are up to inf"),
            std::string::npos);
  const Logits two = random_head(2, 3, NormKind::rms, 1, 0.0).logits();
  std::vector<TokenReach> three(3);
  try {
    decide(two, three, {.threads = 1});
    FAIL() << "accepted answers for other tokens";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Shape);
    EXPECT_NE(std::string(error.what()).find("answers for 3 tokens, expected 2"), std::string::npos);
  }
}

}  // namespace
}  // namespace normscope::selectability
