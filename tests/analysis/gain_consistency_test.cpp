#include <normscope/analysis/gain_consistency.hpp>

#include <cmath>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/forward/decoder.hpp>

#include "support/data.hpp"
#include "support/fixtures.hpp"

namespace normscope::analysis {
namespace {

namespace fs = std::filesystem;

fs::path own_model() { return fs::path(NORMSCOPE_SOURCE_DIR) / "models/kjv_gpt"; }

/// As if the file stored gains with `excess` added, and the class added `offset` to them.
models::Model stored_with(models::Model model, double excess, double offset) {
  for (models::Norm& norm : model.norms) norm.gain_offset = excess + offset;
  if (offset != 0.0) {
    // The measure takes norms of such a class, and the others keep theirs.
    for (models::Norm& norm : model.norms) norm.gain_was_shifted = true;
  }
  return model;
}

void expect_shifts(const fs::path& path) {
  const files::Checkpoint checkpoint(path);
  const models::Model model = models::describe(checkpoint);
  for (const auto& [excess, shift] : {std::pair{0.0, 0}, {1.0, -1}, {-1.0, 1}}) {
    for (const double offset : {0.0, 1.0}) {
      const models::Model stored = stored_with(model, excess - offset, offset);
      const GainConsistency found = gain_consistency(checkpoint, stored);
      EXPECT_EQ(found.undecided, "");
      EXPECT_EQ(found.shift, shift) << excess << " " << offset;
      ASSERT_EQ(found.gains.size(), 3U);
      EXPECT_EQ(found.gains[0].shift, 0.0);
      EXPECT_GT(found.gains[0].growth, 1.0);
    }
  }
}

TEST(GainConsistency, NamesTheShiftOfOurOwnModel) { expect_shifts(own_model()); }

// What transformers 5.24's GPT2LMHeadModel computes in float64 with these gains.
TEST(GainConsistency, HasTheLossesAndTheGrowthOfTransformers) {
  const files::Checkpoint checkpoint(own_model());
  const GainConsistency found = gain_consistency(checkpoint, models::describe(checkpoint));
  EXPECT_EQ(found.tokens, 38U);
  EXPECT_NEAR(found.uniform, std::log(1024.0), 1e-12);
  ASSERT_EQ(found.gains.size(), 3U);
  for (const auto& [index, shift, loss, growth] :
       {std::tuple{0, 0.0, 3.822, 6.3}, {1, -1.0, 7.250, 7.8}, {2, 1.0, 11.012, 19.3}}) {
    EXPECT_EQ(found.gains[index].shift, shift);
    EXPECT_NEAR(found.gains[index].loss, loss, 5e-4);
    EXPECT_NEAR(found.gains[index].growth, growth, 0.05);
  }
}

TEST(GainConsistency, RunsNothingBeyondTheBudget) {
  const files::Checkpoint checkpoint(own_model());
  models::Model model = models::describe(checkpoint);
  const GainConsistency found = gain_consistency(checkpoint, model);
  EXPECT_EQ(found.shift, 0);
  EXPECT_EQ(found.work, 4.0 * 39.0 * static_cast<double>(model.parameters));
  EXPECT_EQ(gain_consistency(checkpoint, model, 0, {}, found.work).shift, 0);
  const GainConsistency left = gain_consistency(checkpoint, model, 0, {}, 0.99 * found.work);
  EXPECT_FALSE(left.shift.has_value());
  EXPECT_EQ(left.work, found.work);
  EXPECT_TRUE(left.gains.empty());
  model.parameters = 10'000'000'000;
  EXPECT_EQ(gain_consistency(checkpoint, model).undecided,
            "it was not run, which takes 1.6e+12 multiplications, over the budget of 5e+10");
}

TEST(GainConsistency, NamesTheShiftOfATrainedLlama) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/llama2c_stories260K.safetensors");
  expect_shifts(path);
}

// With the loss alone, one token again and again would decide: of 100 tokens 880 each is expected with 5.1,
// 6.1 and 8.2 nats, and all 1024 are equally likely with 6.9.
TEST(GainConsistency, TokensWithoutOrderDecideNothing) {
  const files::Checkpoint checkpoint(own_model());
  const models::Model model = models::describe(checkpoint);
  const std::vector<std::size_t> one_token(100, 880);
  const GainConsistency repeated = gain_consistency(checkpoint, model, one_token);
  EXPECT_EQ(repeated.shift, std::nullopt);
  EXPECT_EQ(repeated.undecided, "the text is about as likely with its tokens in another order");
  EXPECT_LT(repeated.gains[0].loss, repeated.uniform - 1.0);
  Random random(3);
  std::vector<std::size_t> tokens;
  for (std::size_t i = 0; i < 100; ++i) tokens.push_back(random.below(1024));
  const GainConsistency found = gain_consistency(checkpoint, model, tokens);
  EXPECT_EQ(found.shift, std::nullopt);
  EXPECT_EQ(found.undecided,
            "the text is hardly likelier than any other with its gains as described or off by 1");
}

TEST(GainConsistency, RandomWeightsAreUndecided) {
  std::size_t run = 0;
  for (const std::string& name : test::fixtures_with("truth.json")) {
    const files::Checkpoint checkpoint(test::fixture(name));
    const models::Model model = models::describe(checkpoint);
    std::size_t vocabulary = 0;
    try {
      vocabulary = forward::Decoder(checkpoint, model).vocabulary();
    } catch (const std::exception&) {
      continue;
    }
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      Random random(seed);
      std::vector<std::size_t> tokens;
      for (std::size_t i = 0; i < 60; ++i) tokens.push_back(random.below(vocabulary));
      const GainConsistency found = gain_consistency(checkpoint, model, tokens);
      EXPECT_EQ(found.shift, std::nullopt) << name;
      EXPECT_NE(found.undecided, "") << name;
    }
    ++run;
  }
  EXPECT_GT(run, 30U);
}

TEST(GainConsistency, WithoutATokenizerNothingIsRun) {
  const files::Checkpoint checkpoint(test::fixture("llama"));
  const GainConsistency found = gain_consistency(checkpoint, models::describe(checkpoint));
  EXPECT_EQ(found.shift, std::nullopt);
  EXPECT_EQ(found.undecided, "there is no tokenizer beside the file");
  EXPECT_TRUE(found.gains.empty());
}

}  // namespace
}  // namespace normscope::analysis
