#include "network.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <normscope/core/random.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/forward/tokenizer.hpp>

#include "recipe.hpp"
#include "tiny.hpp"
#include "training.hpp"

namespace normscope::lab {
namespace {

const Tokens stream = {7, 270, 3, 3, 99, 0, 271, 4, 98, 3, 7, 12, 279, 5, 3, 1, 8};

/// Both rows of eight positions that `stream` has.
Batch two_rows() {
  Batch batch{0, 8, {}, {}};
  append_row(batch, stream, 0);
  append_row(batch, stream, 8);
  return batch;
}

/// Values where no gain, bias or weight is special.
std::vector<float> shaken_values(const Recipe& recipe) {
  std::vector<float> values = initial_values(recipe);
  Random random(11);
  for (float& value : values) value += static_cast<float>(0.2 * random.normal());
  return values;
}

TEST(Network, GradientMatchesFiniteDifferences) {
  const Recipe recipe = test::tiny_recipe();
  Network network(recipe, 1);
  std::vector<float> values = shaken_values(recipe);
  const Batch batch = two_rows();
  std::vector<float> gradient(values.size());
  std::vector<float> ignored(values.size());
  network.loss_and_gradient(values, batch, gradient);
  for (const Parameter& tensor : parameters(recipe)) {
    const std::size_t i = tensor.offset + tensor.count / 2;
    const float middle = values[i];
    const float step = 0.01F;
    values[i] = middle + step;
    const double above = network.loss_and_gradient(values, batch, ignored);
    values[i] = middle - step;
    const double below = network.loss_and_gradient(values, batch, ignored);
    values[i] = middle;
    EXPECT_NEAR(gradient[i], (above - below) / (2.0 * step), 1e-3) << tensor.name;
  }
}

TEST(Network, ScoresDoNotDependOnLaterTokens) {
  const Recipe recipe = test::tiny_recipe();
  Network network(recipe, 1);
  const std::vector<float> values = shaken_values(recipe);
  Batch pair = two_rows();
  for (std::size_t i = 0; i < 3; ++i) pair.inputs[8 + i] = pair.inputs[i];
  const std::vector<float> logits = network.logits(values, pair);
  const std::size_t row = 8 * recipe.tokens;
  double difference_later = 0.0;
  for (std::size_t i = 0; i < row; ++i) {
    const double difference = std::abs(logits[i] - logits[row + i]);
    if (i < 3 * recipe.tokens) {
      EXPECT_LE(difference, 1e-6);
    } else {
      difference_later += difference;
    }
  }
  EXPECT_GT(difference_later, 0.1);
}

TEST(Network, MeanLossIsTheLossPerToken) {
  Recipe recipe = test::tiny_recipe();
  recipe.context = 8;
  Network network(recipe, 1);
  const std::vector<float> values = shaken_values(recipe);
  std::vector<float> gradient(values.size());
  EXPECT_NEAR(network.loss_and_gradient(values, two_rows(), gradient),
              model_loss(network, recipe, values, stream, 2), 1e-5);
}

TEST(CountLoss, MatchesACountDoneByHand) {
  const Tokens training = {0, 1, 0, 2};
  // 0 is two of the four tokens and three are distinct, so 0 has (2 + 3 / 5) / 7 of five tokens.
  EXPECT_NEAR(count_loss(training, Tokens{0}, 5, 0), -std::log(2.6 / 7.0), 1e-12);
  // After 0, 1 was seen once of twice, with two distinct tokens.
  EXPECT_NEAR(count_loss(training, Tokens{0, 1}, 5, 1), -std::log((1.0 + 2.0 * (1.6 / 7.0)) / 4.0), 1e-12);
  // Nothing was seen after 2, or is known of 3.
  EXPECT_NEAR(count_loss(training, Tokens{2, 3}, 5, 1), -std::log(0.6 / 7.0), 1e-12);
}

TEST(CommittedModel, KnowsItsTextBetterThanAnyCounts) {
  const std::filesystem::path source = NORMSCOPE_SOURCE_DIR;
  const Recipe recipe = read_recipe(source / "lab/gpt/recipe.json");
  const files::Checkpoint file(source / "models/kjv_gpt");
  const std::vector<Parameter> tensors = parameters(recipe);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  std::vector<float> values;
  for (const Parameter& tensor : tensors) {
    const files::Tensor* found = file.find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    for (const double value : files::read(*found)) {
      ASSERT_TRUE(std::isfinite(value)) << tensor.name;
      values.push_back(static_cast<float>(value));
    }
  }
  const forward::Tokenizer tokenizer(source / "models/kjv_gpt/tokenizer.json", recipe.tokens);
  Batch batch{1, 0, {}, {}};
  for (const std::size_t token : tokenizer.encode("And God said, Let there be light: and there was light.")) {
    batch.inputs.push_back(static_cast<std::int64_t>(token));
  }
  batch.targets.assign(batch.inputs.begin() + 1, batch.inputs.end());
  batch.inputs.pop_back();
  batch.length = batch.inputs.size();
  std::vector<float> gradient(values.size());
  EXPECT_LT(Network(recipe, 1).loss_and_gradient(values, batch, gradient), 3.3);
}

}  // namespace
}  // namespace normscope::lab
