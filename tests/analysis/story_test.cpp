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

const Headline* headline_of(const Report& report, const std::string& kind) {
  for (const Headline& headline : report.headlines) {
    if (headline.finding && report.findings[*headline.finding].kind == kind) return &headline;
  }
  return nullptr;
}

TEST_F(Headlines, NameTheNormTheNumberAndTheConsequence) {
  std::vector<double> gain(64, 1.0);
  gain[7] = 10.0;
  add(gain);
  Report given = report();
  std::erase_if(given.findings, [](const Finding& finding) { return finding.kind != "stretched_axis"; });
  given.headlines = headlines(given);
  const Headline* const axis = headline_of(given, "stretched_axis");
  ASSERT_NE(axis, nullptr);
  const double ratio = given.norms[0].image->top_axes[0].ratio_to_median;
  EXPECT_EQ(axis->number, fmt::format("{:.3g} ×", ratio));
  EXPECT_NE(axis->of.find("norms.0.norm"), std::string::npos);
  EXPECT_NE(axis->why.find(fmt::format("leaves the median one {:.3g} of 127 steps", 127.0 / ratio)),
            std::string::npos)
      << axis->why;
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
  EXPECT_FALSE(found[0].finding.has_value());
  EXPECT_EQ(found[0].norm, 1U);
  EXPECT_NE(found[0].why.find("before its bias"), std::string::npos) << found[0].why;
}

TEST_F(Headlines, SayNothingOfANormThatDoesNotNormalize) {
  std::vector<double> gain(64, 1.0);
  gain[7] = 10.0;
  add(gain);
  Report given = report();
  given.norms[0].norm.kind = NormKind::dyt;
  EXPECT_TRUE(headlines(given).empty());
}

TEST(HeadHeadlines, BoundTheAttentionOnOneKey) {
  Report given = report_of({{0.0, 2.0}, {0.0, 300.0}});
  given.model.architecture = "gpt2";
  for (heads::HeadReach& head : given.heads) head.norm = "h.0.ln_1";
  given.findings = find(given);
  const auto text = [&] {
    const std::vector<Headline> found = headlines(given);
    return found.empty() ? "" : found[0].number + ": " + found[0].why;
  };
  // e² / (e² + 1023), rounded up.
  EXPECT_EQ(
      text(),
      "1 head: The least sharp one reads h.0.ln_1: whatever its query, none of 1024 keys gets more than "
      "0.718 % of its attention, so it cannot copy from one token.");
  given.heads[0].attention->distances.emplace();
  given.heads[0].attention->distances->within = 100;
  EXPECT_NE(text().find("none of 100 keys gets more than 6.95 %"), std::string::npos) << text();
  given.model.architecture = "unknown";
  EXPECT_EQ(text(), "") << "the heads may be others";
}

TEST(HeadHeadlines, WriteFactorsBetweenWeightsInPowersOfTen) {
  Report given = report_of({{2.5, 50.0}, {0.0, 176.6}});
  given.model.architecture = "gpt2";
  for (heads::HeadReach& head : given.heads) head.norm = "h.0.ln_1";
  const auto text = [&] {
    std::string all;
    for (const Headline& headline : headlines(given)) all += headline.why;
    return all;
  };
  // e^176.6 = 5.0 · 10^76.
  EXPECT_NE(text().find("a key can have 10⁷⁶ times the weight of another."), std::string::npos) << text();
  given.findings = find(given);
  EXPECT_NE(text().find("at least 12.1 times the weight of another"), std::string::npos) << text();
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
