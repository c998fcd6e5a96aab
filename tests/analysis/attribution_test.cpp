#include <normscope/analysis/attribution.hpp>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>

#include "support/files.hpp"
#include "support/fixtures.hpp"

namespace normscope::analysis {
namespace {

struct Text {
  explicit Text(const std::string& name)
      : checkpoint(test::fixture(name)), model(models::describe(checkpoint)) {
    std::ifstream file(test::fixture(name) / "truth.json");
    tokens = nlohmann::json::parse(file).at("inputs").at("input_ids").at(0).get<std::vector<std::size_t>>();
  }

  [[nodiscard]] Attribution attributed(AttributeOptions options) const {
    options.threads = 1;
    return attribute(checkpoint, model, tokens, options);
  }

  files::Checkpoint checkpoint;
  models::Model model;
  std::vector<std::size_t> tokens{};
};

// Sequential and parallel blocks, norms behind branches, factors of branches and logits, biases.
class AttributedFixture : public testing::TestWithParam<std::string> {};

TEST_P(AttributedFixture, SharesAddUpToTheLogit) {
  const Text text(GetParam());
  const Attribution result = text.attributed({.target = 3, .against = 5, .at = 4, .budget = 0.0});
  const forward::Decoder decoder(text.checkpoint, text.model, 1);
  const std::vector<double> hidden = decoder.run(text.tokens);
  std::vector<double> logits(decoder.vocabulary());
  const std::size_t width = hidden.size() / text.tokens.size();
  models::Model uncapped = text.model;
  uncapped.vocabulary->soft_cap = 0.0;
  const forward::Decoder reader(text.checkpoint, uncapped, 1);
  reader.logits({hidden.data() + 4 * width, 1, width}, {logits.data(), 1, logits.size()});
  double total = result.constant;
  for (const ComponentEffect& component : result.components) total += component.share;
  EXPECT_NEAR(total, result.value, 1e-10);
  EXPECT_NEAR(result.value, logits[3] - logits[5], 1e-10);
  const Attribution earlier = text.attributed({.target = 3, .against = 5, .at = 2, .budget = 0.0});
  for (std::size_t k = 0; k < result.components.size(); ++k) {
    ASSERT_EQ(result.components[k].shares.size(), 5U);
    EXPECT_NEAR(result.components[k].shares[4], result.components[k].share, 1e-12);
    EXPECT_NEAR(result.components[k].shares[2], earlier.components[k].share, 1e-10);
  }
  EXPECT_LE(result.miss, 1e-13);
}

TEST_P(AttributedFixture, TheLastBlockHasNoOtherEffectThanTheDirectOne) {
  const Text text(GetParam());
  for (const Removal removal : {Removal::zero, Removal::mean}) {
    const Attribution result = text.attributed({.target = 2, .removal = removal});
    std::size_t compared = 0;
    bool is_indirect = false;
    for (const ComponentEffect& component : result.components) {
      ASSERT_TRUE(component.rerun.has_value());
      const bool is_last = component.component->layer == text.model.layers - 1 &&
                           (component.component->kind == forward::Component::Kind::mlp ||
                            component.component->kind == forward::Component::Kind::mlp_bias);
      const double difference = std::abs(*component.rerun - component.effect.exact);
      if (!is_last || component.component->after != nullptr) {
        is_indirect = is_indirect || difference > 1e-6;
        continue;
      }
      EXPECT_LE(difference, 1e-10) << component.name;
      ++compared;
    }
    EXPECT_TRUE(is_indirect);
    EXPECT_TRUE(compared > 0 || GetParam() == "gemma2");
  }
}

TEST_P(AttributedFixture, RunsShowThatReplacementsAndFreezesHold) {
  const Text text(GetParam());
  const Attribution result = text.attributed({.target = 3, .at = 4});
  ASSERT_TRUE(result.check && result.check->freeze);
  EXPECT_EQ(result.check->null_patch, 0.0);
  EXPECT_EQ(result.check->differing, 0U);
  const auto [by_paths, by_run] = *result.check->freeze;
  EXPECT_GT(std::abs(by_paths), 1e-3);
  EXPECT_NEAR(by_run, by_paths, 1e-9 * std::abs(by_paths));
  EXPECT_FALSE(text.attributed({.target = 3, .budget = 0.0}).check.has_value());
}

INSTANTIATE_TEST_SUITE_P(Attribution, AttributedFixture,
                         testing::Values("gpt2", "llama", "gemma2", "granite", "cohere", "gptj", "stablelm"),
                         [](const auto& instance) { return instance.param; });

TEST(Attribution, ANullPatchGivesExactlyNothing) {
  Text text("gpt2");
  text.tokens.resize(1);  // the mean over one position is the component itself
  const Attribution result = text.attributed({.target = 2, .removal = Removal::mean});
  ASSERT_FALSE(result.components.empty());
  for (const ComponentEffect& component : result.components) {
    EXPECT_EQ(component.effect.exact, 0.0) << component.name;
    EXPECT_EQ(component.rerun, 0.0) << component.name;
  }
}

TEST(Attribution, TakesRowsThatAddUpToTheStream) {
  const Text text("gpt2");
  const forward::Decoder decoder(text.checkpoint, text.model, 1);
  std::vector<double> rows;
  std::size_t width = 0;
  (void)decoder.run_apart(text.tokens, {.collect = [&](std::size_t, MatrixView<const double> part) {
                            const auto last = part.row(part.rows() - 1);
                            rows.insert(rows.end(), last.begin(), last.end());
                            width = part.width();
                          }});
  const Attribution own = text.attributed({.target = 1, .budget = 0.0});
  AttributeOptions options{.target = 1};
  options.components = MatrixView<const double>(rows.data(), rows.size() / width, width);
  const Attribution given = text.attributed(options);
  ASSERT_EQ(given.components.size(), own.components.size());
  for (std::size_t k = 0; k < own.components.size(); ++k) {
    EXPECT_EQ(given.components[k].share, own.components[k].share);
    EXPECT_FALSE(given.components[k].rerun.has_value());
  }
  rows[0] += 0.25;
  const std::string refusal = test::error_of(ErrorCode::Argument, [&] { (void)text.attributed(options); });
  EXPECT_NE(refusal.find("do not add up to the row that enters transformer.ln_f: feature 0 misses by"),
            std::string::npos)
      << refusal;
}

TEST(Attribution, RefusesWhatIsNotThere) {
  const Text text("gpt2");
  const auto refusal = [&](const AttributeOptions& options) {
    return test::error_of(ErrorCode::Argument, [&] { (void)text.attributed(options); });
  };
  EXPECT_NE(refusal({.target = 100000}).find("target 100000 is not in the vocabulary"), std::string::npos);
  EXPECT_NE(refusal({.target = 0, .at = 99}).find("position 99 is not in the text"), std::string::npos);
  EXPECT_NE(refusal({.target = 0, .removal = Removal::given}).find("no replacements"), std::string::npos);
}

}  // namespace
}  // namespace normscope::analysis
