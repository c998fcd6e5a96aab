#include <cmath>

#include <gtest/gtest.h>

#include <normscope/selectability/reach.hpp>
#include <normscope/selectability/select.hpp>

#include "selectability/test_keys.hpp"
#include "support/hull_lp.hpp"

namespace normscope::selectability {
namespace {

TEST(Select, AgreesWithOneLinearProgramAKey) {
  std::size_t compared = 0;
  std::size_t inside = 0;
  for (std::uint64_t seed = 0; seed < 240; ++seed) {
    Random random(seed);
    const std::size_t width = 1 + random.below(8);
    Keys set = normal_keys(width + 1 + random.below(30), width, seed);
    // Half of the sets lie on a grid, so that keys lie on edges or are equal.
    if (seed % 2 == 0) {
      for (double& value : set.values) value = std::round(2.0 * value);
    }
    const Selection selection = keys(set.view());
    support::HullPrograms programs(set.view());
    for (std::size_t key = 0; key < set.rows(); ++key) {
      const Selectability expected =
          programs.inside(key) ? Selectability::unselectable : Selectability::selectable;
      ASSERT_EQ(selection.keys[key].answer, expected) << seed << " " << key;
      ++compared;
      if (expected == Selectability::unselectable) ++inside;
    }
  }
  EXPECT_GT(compared, 4000);
  EXPECT_GT(inside, 400);
}

TEST(Reach, AgreesWithOneLinearProgramATokenWithoutTheBall) {
  std::size_t compared = 0;
  std::size_t losers = 0;
  std::size_t freed = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    const std::size_t width = 1 + random.below(6);
    // A row of the unembedding, then the token's bias. On a grid, tokens are equal or lie in the hull of
    // others with a lead of exactly zero.
    Keys table = normal_keys(width + 2 + random.below(16), width + 1, seed, 1.0 + random.uniform());
    if (seed % 2 == 0) {
      for (double& value : table.values) value = std::round(value);
    }
    const std::size_t tokens = table.rows();
    std::vector<double> weights;
    std::vector<double> bias;
    for (std::size_t token = 0; token < tokens; ++token) {
      const std::vector<double> row = table.row(token);
      weights.insert(weights.end(), row.begin(), row.end() - 1);
      bias.push_back(row.back());
    }
    const NormSpec norm{.kind = NormKind::rms, .width = width};
    std::vector<TokenReach> reach;
    decide(fold(norm, {weights.data(), tokens, width}, bias), reach, {.threads = 1});
    support::HullPrograms programs(table.view());
    for (std::size_t token = 0; token < tokens; ++token) {
      const proof::Answer expected = programs.below(token) ? proof::Answer::no : proof::Answer::yes;
      ASSERT_EQ(reach[token].unbounded, expected) << seed << " " << token;
      ++compared;
      if (expected == proof::Answer::no) {
        ASSERT_EQ(reach[token].answer, proof::Answer::no) << seed << " " << token;
        ++losers;
      } else if (reach[token].answer == proof::Answer::no) {
        ++freed;
      }
    }
  }
  EXPECT_GT(compared, 20000);
  EXPECT_GT(losers, 5000);
  EXPECT_GT(freed, 1000);
}

}  // namespace
}  // namespace normscope::selectability
