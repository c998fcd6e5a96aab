#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <normscope/analysis/report.hpp>

#include "analysis/head_reports.hpp"
#include "analysis/norms.hpp"
#include "models/tiny_models.hpp"
#include "support/gains.hpp"

namespace normscope::analysis {
namespace {

using GainShape = Norms;
using Headlines = Norms;

TEST_F(GainShape, CountsEveryGainThatIsNotZero) {
  add({1.0, 2.0, -2.0, 0.99, 0.0, 1.18, 1.19});
  const Report given = report();
  // Bins of a quarter of an octave: 2^(1/4) = 1.189.
  EXPECT_EQ(given.norms[0].gain_sizes, (std::map<int, std::size_t>{{-1, 1}, {0, 2}, {1, 1}, {4, 2}}));
}

TEST_F(GainShape, HasTheMostUnusualGainOfEachBlock) {
  std::vector<double> gain(130, 2.0);
  gain[4] = 3.0;
  gain[5] = 1.0;  // further from the median than 3, in octaves
  gain[129] = 0.0;
  add(gain);
  const std::vector<GainBlock> blocks = report().norms[0].gain_blocks;
  ASSERT_EQ(blocks.size(), 44U);
  EXPECT_EQ(blocks[1].coordinate, 5U);
  EXPECT_EQ(blocks[1].ratio, 0.5);
  EXPECT_EQ(blocks[43].begin, 129U);
  EXPECT_EQ(blocks[43].end, 130U);
  EXPECT_EQ(blocks[43].ratio, 0.0);
}

TEST_F(Headlines, AreOnDifferentTopics) {
  std::vector<double> gain = test::random_gain(64, "wide", 3);
  gain[7] = 100.0;
  gain[9] = 1e-4;
  for (int i = 0; i < 4; ++i) add(gain, std::vector<double>(64, 3.0));
  const Report given = report();
  ASSERT_EQ(given.headlines.size(), most_headlines);
  EXPECT_NE(given.headlines[0].topic, given.headlines[1].topic);
  EXPECT_NE(given.headlines[1].topic, given.headlines[2].topic);
  EXPECT_NE(given.headlines[0].topic, given.headlines[2].topic);
}

TEST_F(Headlines, TellTheLongestAxisWhereNothingIsUnusual) {
  add(std::vector<double>(64, 1.0));
  std::vector<double> gain(64, 1.0);
  gain[0] = 1.01;
  add(gain);
  Report given = report();
  given.findings.clear();
  const std::vector<Headline> found = headlines(given);
  ASSERT_EQ(found.size(), 1U);
  ASSERT_TRUE(std::holds_alternative<LongestAxis>(found[0].statement));
  EXPECT_EQ(std::get<LongestAxis>(found[0].statement).norm, 1U);
}

TEST_F(Headlines, SayNothingOfANormThatDoesNotNormalize) {
  std::vector<double> gain(64, 1.0);
  gain[7] = 10.0;
  add(gain);
  Report given = report();
  given.norms[0].norm.kind = NormKind::dyt;
  EXPECT_TRUE(headlines(given).empty());
}

TEST(HeadHeadlines, AreAboutHeadsOfKnownModels) {
  Report given = report_of({{0.0, 2.0}, {0.0, 300.0}});
  given.model.architecture = "gpt2";
  for (heads::HeadReach& head : given.heads) head.norm = "h.0.ln_1";
  const std::vector<Headline> unusual = headlines(given);
  ASSERT_EQ(unusual.size(), 1U);
  EXPECT_EQ(std::get<SharpHeads>(unusual[0].statement).sharpest, 1U);
  given.findings = find(given);
  ASSERT_EQ(headlines(given).size(), 1U);
  EXPECT_TRUE(std::holds_alternative<FindingIndex>(headlines(given)[0].statement));
  given.model.architecture = "unknown";
  EXPECT_TRUE(headlines(given).empty()) << "the heads may be others";
}

/// A Llama whose first norm singles out coordinate 3 of 8, with these rows of the token embedding.
Report llama(const std::vector<std::vector<double>>& rows) {
  test::Synthetic file = test::tiny_llama();
  std::vector<double> table;
  for (std::size_t token = 0; token < 11; ++token) {
    const std::vector<double> row = token < rows.size() ? rows[token] : std::vector<double>(8, 1.0);
    table.insert(table.end(), row.begin(), row.end());
  }
  file.set("model.embed_tokens.weight", table);
  file.set("model.layers.0.input_layernorm.weight", {1, 1, 1, 9, 1, 1, 1, 1});
  return audit(file.open());
}

TEST(EmbeddingUse, JoinsACoordinateToTheTokensThatUseIt) {
  const Report given = llama({std::vector<double>(8, 0.0), {0, 0, 4, -3, 0, 0, 0, 0}});
  const auto feature = std::find_if(given.features.begin(), given.features.end(),
                                    [](const UnusualFeature& one) { return one.coordinate == 3; });
  ASSERT_NE(feature, given.features.end());
  ASSERT_TRUE(feature->embedding.has_value());
  const std::vector<EmbeddingRow>& tokens = feature->embedding->rows;
  ASSERT_EQ(tokens.size(), 5U);
  EXPECT_EQ(tokens[0].token, 1U);
  EXPECT_EQ(tokens[0].entry, -3.0);
  EXPECT_DOUBLE_EQ(tokens[0].share, 9.0 / 25.0);
  EXPECT_EQ(tokens[1].token, 2U) << "the first of equal ones";
  // Column 3 has 9 + 9 · 1, all columns together 25 + 9 · 8.
  EXPECT_DOUBLE_EQ(feature->embedding->over_mean, 18.0 / (97.0 / 8.0));
}

TEST(EmbeddingUse, IsUnknownForWeightsThatAreNotFinite) {
  std::vector<double> row(8, 1.0);
  row[0] = NAN;
  for (const UnusualFeature& feature : llama({row}).features) EXPECT_FALSE(feature.embedding.has_value());
}

}  // namespace
}  // namespace normscope::analysis
