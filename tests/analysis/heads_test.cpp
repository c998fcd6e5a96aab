#include <cmath>

#include <gtest/gtest.h>

#include <normscope/analysis/report.hpp>
#include <normscope/core/random.hpp>
#include <normscope/files/safetensors.hpp>

#include "analysis/head_reports.hpp"
#include "analysis/norms.hpp"
#include "support/scratch.hpp"

namespace normscope::analysis {
namespace {

TEST(HeadFindings, AreAboutWhatHeadsCanNeverDo) {
  const std::vector<Finding> findings = find(report_of({{0.0, 50.0}, {2.5, 40.0}, {0.0, 0.0}, {0.0, 5.0}}));
  const NeverUniform* const uniform = find_property<NeverUniform>(findings);
  ASSERT_NE(uniform, nullptr);
  EXPECT_EQ(uniform->heads, std::vector<std::size_t>{1});
  EXPECT_EQ(uniform->spread, 2.5);
  const NeverSharp* const sharp = find_property<NeverSharp>(findings);
  ASSERT_NE(sharp, nullptr);
  EXPECT_EQ(sharp->heads, std::vector<std::size_t>{3});
  EXPECT_EQ(sharp->known, 3U);
  EXPECT_EQ(sharp->spread, 5.0);
}

TEST(HeadFindings, AreAbsentWhereHeadsCanDoBoth) {
  const std::vector<Finding> findings = find(report_of({{0.0, 50.0}, {0.5, 7.0}}));
  EXPECT_EQ(find_kind<NeverUniform>(findings), nullptr);
  EXPECT_EQ(find_kind<NeverSharp>(findings), nullptr);
}

TEST(HeadFindings, CountAHeadOfSeveralPassesOnce) {
  Report report = report_of_passes();
  report.heads[1].attention->sharpest = {.lower = 6.0, .upper = 6.0};
  const std::vector<Finding> findings = find(report);
  const NeverSharp* const sharp = find_property<NeverSharp>(findings);
  ASSERT_NE(sharp, nullptr);
  EXPECT_EQ(sharp->heads.size(), 2U);
  EXPECT_EQ(sharp->different, 1U);
  EXPECT_EQ(sharp->known, 1U);
}

/// One head of four features over a stream of six, and two norms that it may read.
class OneHead : public testing::Test {
 protected:
  OneHead() {
    Random random(3);
    const auto values = [&](std::size_t count) {
      std::vector<double> result(count);
      for (double& value : result) value = random.normal();
      return result;
    };
    const std::vector<double> first = values(6), second = values(6), query = values(24), key = values(24);
    const auto tensor = [](const char* name, std::vector<std::uint64_t> shape,
                           const std::vector<double>& data) {
      return files::NewTensor{name, Dtype::F64, std::move(shape), std::as_bytes(std::span(data))};
    };
    files::write_safetensors(scratch_ / "m.safetensors",
                             std::vector{tensor("first", {6}, first), tensor("second", {6}, second),
                                         tensor("query", {4, 6}, query), tensor("key", {4, 6}, key)});
    models::Head& head = model_.heads.emplace_back();
    head.head_dim = 4;
    head.scale = 0.5;
    head.norm = "first";
    const auto linear = [](const char* name) {
      return models::Linear{
          .role = name, .weight = {.tensor = name, .count = 24}, .in = 6, .stored_out = 4, .out = 4};
    };
    head.query = linear("query");
    head.key = linear("key");
    for (const char* name : {"first", "second"}) {
      models::Norm& norm = model_.norms.emplace_back();
      norm.name = name;
      norm.kind = NormKind::rms;
      norm.width = 6;
      norm.gain = models::Slice{.tensor = name, .count = 6};
      norm.readers = {*head.query, *head.key};
    }
  }
  [[nodiscard]] std::vector<heads::HeadReach> reach(const heads::HeadContexts& contexts = {}) const {
    return heads::reach_of_heads(files::Checkpoint(scratch_ / "m.safetensors"), model_, 1, {}, contexts);
  }

  test::Scratch scratch_;
  models::Model model_;
};

TEST_F(OneHead, IsBoundedForEachNormThatItsPassesRead) {
  const double second = [&] {
    model_.heads[0].norm = "second";
    return reach().at(0).attention->sharpest.upper;
  }();
  model_.heads[0].norm = "first";
  model_.heads[0].later_norms = {"second"};
  const std::vector<heads::HeadReach> both = reach();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0].pass, "first");
  EXPECT_EQ(both[0].norm, "first");
  EXPECT_EQ(both[1].pass, "later");
  EXPECT_EQ(both[1].head, 0u);
  EXPECT_EQ(both[1].attention->sharpest.upper, second);
  EXPECT_NE(both[0].attention->sharpest.upper, second);
  // An unknown first norm leaves the later passes known.
  model_.heads[0].norm.clear();
  const std::vector<heads::HeadReach> later = reach();
  EXPECT_EQ(later[0].refused, "the norm it reads is not known");
  EXPECT_EQ(later[1].attention->sharpest.upper, second);
}

TEST_F(OneHead, IsRefusedWhereItsScoresAreNotModelled) {
  model_.heads[0].not_modelled = "position_embedding_type: relative_key";
  const std::vector<heads::HeadReach> heads = reach();
  EXPECT_FALSE(heads.at(0).attention.has_value());
  EXPECT_EQ(heads[0].refused, "not modelled: position_embedding_type: relative_key");
}

TEST_F(OneHead, IsLeftOutBeyondTheBudget) {
  const std::vector<heads::HeadReach> heads = reach({.budget = 0.0});
  EXPECT_FALSE(heads.at(0).attention.has_value());
  EXPECT_EQ(heads[0].refused, "left out, beyond the budget for heads");
}

TEST_F(OneHead, FitsIntoABudgetByItsDistancesAndBiases) {
  const auto fits = [&](double budget) { return reach({.budget = budget}).at(0).attention.has_value(); };
  // The first head, too, is left out where it takes more than all.
  EXPECT_FALSE(fits(1e3));
  EXPECT_TRUE(fits(1e4));
  model_.heads[0].rotary = models::Rotary{.dims = 4, .frequencies = {1.0, 0.01}, .context = 2000};
  EXPECT_FALSE(fits(1e4));
  EXPECT_TRUE(fits(2e5));
  model_.norms[0].bias = model_.norms[0].gain;
  EXPECT_FALSE(fits(2e5));
  EXPECT_TRUE(fits(2e6));
  model_.heads[0].window = 7;
  EXPECT_TRUE(fits(2e5));
}

TEST_F(OneHead, TurnsWithinItsContextAndWindow) {
  model_.heads[0].rotary = models::Rotary{.dims = 4, .frequencies = {1.0, 0.01}, .context = 100};
  EXPECT_EQ(reach().at(0).attention->distances->within, 100u);
  EXPECT_EQ(reach({.positions = 20}).at(0).attention->distances->within, 20u);
  model_.heads[0].window = 7;
  EXPECT_EQ(reach({.positions = 20}).at(0).attention->distances->within, 7u);
  model_.heads[0].rotary->context = 0;
  model_.heads[0].window = {};
  EXPECT_EQ(reach().at(0).attention->distances->within, 0u);
}

TEST_F(OneHead, PassesTheSoftCapOn) {
  const double raw = reach().at(0).attention->sharpest.upper;
  model_.heads[0].soft_cap = 2.0;
  const double capped = reach().at(0).attention->sharpest.upper;
  EXPECT_NEAR(capped, 4.0 * std::tanh(raw / 4.0), 1e-12);
}

TEST_F(OneHead, WithWeightsAtTheEndsOfTheRangeIsRefused) {
  std::vector<double> query(24, 1e200);
  files::write_safetensors(
      scratch_ / "n.safetensors",
      std::vector{files::NewTensor{"first", Dtype::F64, {6}, std::as_bytes(std::span(query).first(6))},
                  files::NewTensor{"query", Dtype::F64, {4, 6}, std::as_bytes(std::span(query))},
                  files::NewTensor{"key", Dtype::F64, {4, 6}, std::as_bytes(std::span(query))}});
  const std::vector<heads::HeadReach> heads =
      heads::reach_of_heads(files::Checkpoint(scratch_ / "n.safetensors"), model_, 1);
  EXPECT_EQ(heads.at(0).refused, "its weights are too large or too small: scores leave the range of float64");
}

}  // namespace
}  // namespace normscope::analysis
