#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/selectability/reach.hpp>
#include <normscope/selectability/select.hpp>

#include "selectability/test_keys.hpp"
#include "support/hull_lp.hpp"

namespace normscope::selectability {
namespace {

std::vector<RandomCell> row_of(std::size_t count, std::size_t most_width, std::size_t runs, bool normalize) {
  RandomTable table{
      .most_width = most_width, .least_count = count, .most_count = count, .runs = runs, .seed = 2};
  if (normalize) {
    table.transform = [](MatrixView<double> keys) {
      norm::forward({.width = keys.width(), .eps = 0.0}, keys, keys);
    };
  }
  return random_table(table);
}

TEST(RandomTable, ReproducesThePapersFigure) {
  std::vector<double> theirs;
  std::vector<double> any;
  std::vector<double> mean;
  double farthest = 0.0;
  for (const FigureRow& row : figure_1c()) {
    for (const RandomCell& cell : row_of(row.count, 12, 100, false)) {
      theirs.push_back(row.shares[cell.width - 3]);
      any.push_back(cell.any);
      mean.push_back(cell.mean);
      farthest = std::max(farthest, std::abs(any.back() - theirs.back()));
      EXPECT_EQ(cell.undecided, 0);
      if (cell.count <= cell.width + 1) {
        EXPECT_EQ(cell.any, 0.0);
      }
    }
  }
  EXPECT_GT(correlation(any, theirs), 0.99);
  EXPECT_LT(farthest, 0.25);
  // The reading in the caption, the mean share, does not agree.
  EXPECT_LT(correlation(mean, theirs), 0.85);
  RecordProperty("correlation", std::to_string(correlation(any, theirs)));
  RecordProperty("farthest", std::to_string(farthest));
  RecordProperty("correlation_of_means", std::to_string(correlation(mean, theirs)));
}

TEST(RandomTable, ScalingLeavesNone) {
  for (const std::size_t count : {3, 10, 35, 60}) {
    for (const RandomCell& cell : row_of(count, 15, 40, true)) {
      EXPECT_EQ(cell.any, 0.0) << cell.width << " " << cell.count;
      EXPECT_EQ(cell.undecided, 0);
    }
  }
}

TEST(RandomTable, ThreadsDoNotChangeABit) {
  const RandomTable table{.most_width = 5, .most_count = 9, .runs = 7, .seed = 5};
  const std::vector<RandomCell> one = random_table(table, 1);
  const std::vector<RandomCell> three = random_table(table, 3);
  ASSERT_EQ(one.size(), 21);
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].any, three[i].any);
    EXPECT_EQ(one[i].mean, three[i].mean);
  }
  RandomTable other = table;
  other.seed = 6;
  const std::vector<RandomCell> differently = random_table(other);
  EXPECT_TRUE(std::any_of(one.begin(), one.end(), [&](const RandomCell& cell) {
    return cell.mean != differently[static_cast<std::size_t>(&cell - one.data())].mean;
  }));
}

TEST(RandomTable, BadInputIsNamed) {
  EXPECT_THROW(static_cast<void>(random_table({.runs = 0})), Error);
  EXPECT_THROW(static_cast<void>(random_table({.least_width = 9, .most_width = 8})), Error);
  EXPECT_THROW(static_cast<void>(random_table({.least_count = 0})), Error);
}

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
    const Selection selection = select_keys(set.view());
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
