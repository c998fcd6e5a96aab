#include "training.hpp"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <normscope/core/error.hpp>

#include "support/scratch.hpp"
#include "tiny.hpp"

namespace normscope::lab {
namespace {

class Training : public ::testing::Test {
 protected:
  Training() {
    test::write_file(scratch_ / "text", test::tiny_text());
    job_ = {test::tiny_recipe(), read_text(scratch_ / "text", {}, test::tiny_recipe()), 1};
  }

  TrainingState run(TrainingState state, const Progress& progress = {}) {
    Network network(job_.recipe, job_.threads);
    train(job_, network, state, path(), progress);
    return state;
  }

  [[nodiscard]] std::filesystem::path path() const { return scratch_ / "state.safetensors"; }

  normscope::test::Scratch scratch_;
  Job job_;
};

TEST_F(Training, LowersTheLoss) {
  const TrainingState state = run(initial_state(job_.recipe));
  ASSERT_EQ(state.curve.size(), 4U);
  EXPECT_LT(state.curve.back().training_loss, state.curve.front().training_loss - 0.1);
}

TEST_F(Training, GivesTheSameBitsTwice) {
  const TrainingState first = run(initial_state(job_.recipe));
  const TrainingState second = run(initial_state(job_.recipe));
  EXPECT_EQ(first.values, second.values);
}

TEST_F(Training, LeavesTokensThatItNeverMeetsOnOneRow) {
  const TrainingState state = run(initial_state(job_.recipe));
  const Parameter head = parameters(job_.recipe).back();
  const auto row = [&](std::size_t token) {
    const auto first =
        state.values.begin() + static_cast<std::ptrdiff_t>(head.offset + token * job_.recipe.width);
    return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(job_.recipe.width));
  };
  const std::vector<float> reserved = row(job_.recipe.tokens - 1);
  for (std::size_t token = 0; token < job_.recipe.tokens; ++token) {
    const Tokens& met = job_.text.training;
    double distance = 0.0;
    for (std::size_t i = 0; i < reserved.size(); ++i) distance += std::abs(row(token)[i] - reserved[i]);
    if (std::find(met.begin(), met.end(), token) == met.end()) {
      EXPECT_LT(distance, 1e-6) << token;
    } else {
      EXPECT_GT(distance, 1e-3) << token;
    }
  }
}

TEST_F(Training, DependsOnTheSeed) {
  const TrainingState first = run(initial_state(job_.recipe));
  ++job_.recipe.seed;
  EXPECT_NE(first.values, run(initial_state(job_.recipe)).values);
}

TEST_F(Training, GoesOnAfterAnInterruptionToTheSameBits) {
  const TrainingState whole = run(initial_state(job_.recipe));
  for (const std::size_t last : {1U, 5U, 7U, 11U}) {
    const Progress cancels([last](std::string_view, std::size_t done, std::size_t) { return done < last; });
    EXPECT_THROW(run(initial_state(job_.recipe), cancels), Error);
    const TrainingState resumed = run(load_state(path(), job_));
    EXPECT_EQ(resumed.values, whole.values) << last;
    EXPECT_EQ(resumed.moments.first, whole.moments.first) << last;
    EXPECT_EQ(resumed.moments.second, whole.moments.second) << last;
    ASSERT_EQ(resumed.curve.size(), whole.curve.size()) << last;
    for (std::size_t i = 0; i < whole.curve.size(); ++i) {
      EXPECT_EQ(resumed.curve[i].held_out_loss, whole.curve[i].held_out_loss) << last;
    }
  }
}

TEST_F(Training, RefusesTheStateOfAnotherJob) {
  save_state(path(), job_, initial_state(job_.recipe));
  Job other = job_;
  other.recipe.peak_learning_rate = 0.02;
  EXPECT_THROW(static_cast<void>(load_state(path(), other)), Error);
  other = job_;
  other.text.fingerprint ^= 1;
  EXPECT_THROW(static_cast<void>(load_state(path(), other)), Error);
  other = job_;
  other.threads = 2;
  EXPECT_THROW(static_cast<void>(load_state(path(), other)), Error);
}

TEST(LearningRate, WarmsUpStaysAndFallsToTheFinalRate) {
  Recipe recipe = test::tiny_recipe();
  EXPECT_NEAR(learning_rate(recipe, 0), 0.01 / 3.0, 1e-15);
  EXPECT_DOUBLE_EQ(learning_rate(recipe, 2), 0.01);
  EXPECT_DOUBLE_EQ(learning_rate(recipe, 3), 0.01);
  EXPECT_NEAR(learning_rate(recipe, 12), 0.001, 1e-15);
  recipe.steps = 20;
  for (std::size_t step = 3; step <= 11; ++step) EXPECT_DOUBLE_EQ(learning_rate(recipe, step), 0.01);
  EXPECT_LT(learning_rate(recipe, 12), 0.01);
  EXPECT_NEAR(learning_rate(recipe, 20), 0.001, 1e-15);
}

TEST(AdamW, FirstStepMovesByTheRateAgainstTheGradientsSign) {
  const Recipe recipe = test::tiny_recipe();
  const std::vector<Parameter> tensors = parameters(recipe);
  TrainingState state = initial_state(recipe);
  const std::vector<float> before = state.values;
  std::vector<float> gradient(before.size(), 0.5F);
  adamw_step(recipe, tensors, 0, gradient, state.values, state.moments);
  const double rate = learning_rate(recipe, 0);
  for (const Parameter& tensor : tensors) {
    const double start = before[tensor.offset];
    const double expected = start - rate * (1.0 + (tensor.decays ? recipe.weight_decay * start : 0.0));
    EXPECT_NEAR(state.values[tensor.offset], expected, 1e-6) << tensor.name;
  }
}

TEST(Clip, ShortensOnlyWhatIsTooLong) {
  std::vector<float> gradient = {3.0F, 4.0F};
  EXPECT_DOUBLE_EQ(clip(gradient, 10.0), 5.0);
  EXPECT_EQ(gradient, (std::vector<float>{3.0F, 4.0F}));
  clip(gradient, 1.0);
  EXPECT_NEAR(gradient[0], 0.6, 1e-6);
  EXPECT_NEAR(gradient[1], 0.8, 1e-6);
}

}  // namespace
}  // namespace normscope::lab
