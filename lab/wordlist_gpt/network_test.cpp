#include "network.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <normscope/core/random.hpp>
#include <normscope/files/checkpoint.hpp>

#include "recipe.hpp"
#include "tiny.hpp"
#include "training.hpp"

namespace normscope::lab {
namespace {

const std::vector<std::string> words = {"apple", "fig", "kiwi", "it's"};

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
  const Batch batch = one_word_a_row(words);
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
  const std::vector<std::string> pair = {"grape", "grzzz"};
  const std::vector<float> logits = network.logits(values, one_word_a_row(pair));
  const std::size_t row = 6 * alphabet.size();
  double difference_later = 0.0;
  for (std::size_t i = 0; i < row; ++i) {
    const double difference = std::abs(logits[i] - logits[row + i]);
    if (i < 3 * alphabet.size()) {
      EXPECT_LE(difference, 1e-6);
    } else {
      difference_later += difference;
    }
  }
  EXPECT_GT(difference_later, 0.1);
}

TEST(Network, MeanLossIsTheLossPerCharacter) {
  const Recipe recipe = test::tiny_recipe();
  Network network(recipe, 1);
  const std::vector<float> values = shaken_values(recipe);
  std::vector<float> gradient(values.size());
  EXPECT_NEAR(network.loss_and_gradient(values, one_word_a_row(words), gradient),
              model_loss(network, values, words), 1e-5);
}

TEST(CountLoss, MatchesACountDoneByHand) {
  const std::vector<std::string> training = {"aa", "b"};
  const std::vector<std::string> test_words = {"a"};
  // Seen: a 2, b 1, newline 2, of 5, and one added to each of 28 tokens.
  EXPECT_NEAR(count_loss(training, test_words, 0), std::log(33.0 / 3.0), 1e-12);
  // After a newline: a 1 of 2. After an a: newline 1 of 2.
  EXPECT_NEAR(count_loss(training, test_words, 1), std::log(30.0 / 2.0), 1e-12);
}

TEST(CommittedModel, SpellsBetterThanCountsOfLetters) {
  const std::filesystem::path source = NORMSCOPE_SOURCE_DIR;
  const Recipe recipe = read_recipe(source / "lab/wordlist_gpt/recipe.json");
  const files::Checkpoint file(source / "models/wordlist_gpt");
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
  Network network(recipe, 1);
  const std::vector<std::string> spelled = {"normalization", "transformer", "attention", "understanding",
                                            "interesting",   "library's",   "mountains", "reasonable"};
  EXPECT_LT(model_loss(network, values, spelled), 1.8);
}

}  // namespace
}  // namespace normscope::lab
