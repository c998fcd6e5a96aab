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
using Causes = Norms;

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

/// The causes of `subject` in a report.
std::vector<Cause> causes_of(const Report& report, Subject subject) {
  std::vector<Cause> result;
  for (const Cause& cause : report.causes) {
    if (cause.subject == subject) result.push_back(cause);
  }
  return result;
}

TEST_F(Causes, GatherACoordinateAcrossNorms) {
  for (int i = 0; i < 4; ++i) {
    std::vector<double> gain(64, 1.0);
    if (i > 0) gain[7] = 100.0 + i;
    add(gain);
  }
  const Report given = report();
  const std::vector<Cause> found = causes_of(given, Subject::coordinate);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].coordinates, std::vector<std::size_t>{7});
  EXPECT_EQ(found[0].norms, (std::vector<std::size_t>{1, 2, 3}));
  EXPECT_EQ(found[0].norm, 3U) << "where it is most unusual";
  ASSERT_EQ(found[0].ratios.size(), 4U);
  EXPECT_EQ(found[0].ratios[2].value, 102.0);
}

TEST_F(Causes, GatherWhatIsUnusualAboutOneNorm) {
  add(std::vector<double>(64, 1.0));
  std::vector<double> gain = test::random_gain(64, "wide", 3);
  gain[7] = 1000.0;
  add(gain, std::vector<double>(64, 3000.0));
  const std::vector<Cause> found = causes_of(report(), Subject::norm);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].norm, 1U);
  EXPECT_EQ(found[0].values[0].measure, Measure::largest_gain);
  EXPECT_GT(found[0].values.size(), 2U);
}

TEST_F(Causes, AreNoneWhereNothingIsUnusual) {
  std::vector<double> gain(64, 1.0);
  for (int i = 0; i < 2; ++i) {
    gain[0] += 0.01;
    add(gain);
  }
  EXPECT_TRUE(report().causes.empty());
}

TEST_F(Causes, SayNothingOfANormThatDoesNotNormalize) {
  std::vector<double> gain(64, 1.0);
  gain[7] = 1000.0;
  add(gain);
  Report given = report();
  given.norms[0].norm.kind = NormKind::dyt;
  given.measures = compare_measures(given);
  EXPECT_TRUE(causes_of(given, Subject::coordinate).empty());
  given.causes = find_causes(given);
  EXPECT_TRUE(given.causes.empty());
}

TEST(HeadCauses, AreAboutHeadsOfKnownModels) {
  Report given = report_of({{0.0, 0.1}, {0.0, 300.0}});
  given.model.architecture = "gpt2";
  for (heads::HeadReach& head : given.heads) head.norm = "h.0.ln_1";
  given.measures = compare_measures(given);
  const std::vector<Cause> unusual = find_causes(given);
  ASSERT_EQ(unusual.size(), 1U);
  EXPECT_EQ(unusual[0].heads, std::vector<std::size_t>{0});
  given.model.architecture = "unknown";
  given.measures = compare_measures(given);
  EXPECT_TRUE(find_causes(given).empty()) << "the heads may be others";
}

TEST(References, AreNeverUnusualAllAtOnce) {
  for (const MeasureFacts& row : measures) {
    std::vector<double> values;
    for (const Reference& reference : references()) {
      const double value = reference.extremes[static_cast<std::size_t>(row.measure)];
      if (!std::isnan(value)) values.push_back(value);
    }
    ASSERT_GT(values.size(), least_references) << row.name;
    // Each beside the others, as a report of that model compares it.
    std::size_t unusual = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::vector<double> others = values;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
      unusual += is_unusual(values[i], row.measure, *usual_of(others, row.measure)) ? 1 : 0;
    }
    EXPECT_LE(2 * unusual, values.size()) << row.name << " is unusual in most reference models";
  }
}

TEST(References, LeaveOutTheModelItself) {
  Report given;
  const Reference& self = references().front();
  given.norms.resize(self.norms);
  for (NormReport& norm : given.norms) norm.norm.width = self.width;
  given.norms[0].gain.emplace();
  given.norms[0].largest_gain = {0, 1.0, self.extremes[static_cast<std::size_t>(Measure::largest_gain)]};
  EXPECT_EQ(references_for(given).size(), references().size() - 1);
  given.norms[0].largest_gain->ratio_to_median *= 1.1;
  EXPECT_EQ(references_for(given).size(), references().size());
}

TEST(Usual, IsWhatFourFifthsOfTheModelsStayWithin) {
  const std::vector<double> values{5.036, 1.0, 2.0, 3.0, 4.0, 40.0, 50.0, 2.5, 2.6, 2.7};
  const Usual large = *usual_of(values, Measure::largest_gain);
  EXPECT_EQ(large.limit, 5.036);
  EXPECT_EQ(large.within, 8U);
  EXPECT_EQ(large.of, 10U);
  EXPECT_FALSE(is_unusual(5.036, Measure::largest_gain, large));
  EXPECT_TRUE(is_unusual(5.0361, Measure::largest_gain, large)) << "compared as it is, not as printed";
  EXPECT_FALSE(is_unusual(3.9, Measure::largest_gain, {.limit = 2.0})) << "short of the threshold";
  EXPECT_EQ(usual_of(values, Measure::null_direction)->limit, 2.5);
  EXPECT_FALSE(usual_of({1.0, 2.0, 3.0}, Measure::bias).has_value());
}

/// A Llama whose first norm singles out coordinate 3 of 8, with these rows of the token embedding.
Report llama(const std::vector<std::vector<double>>& rows) {
  test::Synthetic file = test::tiny_llama();
  file.add("lm_head.weight", {11, 8});
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
