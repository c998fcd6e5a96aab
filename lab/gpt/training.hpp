#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <normscope/core/parallel.hpp>
#include <normscope/core/random.hpp>

#include "adamw.hpp"
#include "network.hpp"
#include "recipe.hpp"
#include "text.hpp"

namespace normscope::lab {

/// Nats per token: the mean of −ln p over `count` rows of the stream, evenly spaced, or over all that there
/// are.
[[nodiscard]] double model_loss(Network& network, const Recipe& recipe, std::span<const float> values,
                                std::span<const std::int64_t> stream, std::size_t count);

/// The loss of counts of `training`: p(next | the `order` tokens before it), interpolated with the lower
/// orders down to equal probabilities. Order 0 is the unigram model, 1 the bigram model.
///   p(t | c) = (count(c t) + distinct(c) · p(t | c without its first token)) / (count(c) + distinct(c))
///
/// Source    [Witten, Bell 1991, The zero-frequency problem, method C]
[[nodiscard]] double count_loss(std::span<const std::int64_t> training, std::span<const std::int64_t> stream,
                                std::size_t tokens, std::size_t order);

/// A text that begins with the tokens `prompt`: each next one is drawn from p^(1/temperature), up to the
/// recipe's context.
[[nodiscard]] std::string sample_text(Network& network, const Recipe& recipe, std::span<const float> values,
                                      const BytePairs& pairs, std::span<const std::int64_t> prompt,
                                      double temperature, Random& random);

/// A point of the training curve, in nats per token.
struct CurvePoint {
  std::size_t step = 0;
  double training_loss = 0.0;
  double held_out_loss = 0.0;
};

/// The inputs of a training. On one machine, equal jobs give equal parameters, bit by bit.
struct Job {
  Recipe recipe;
  Text text;
  int threads = 1;
};

/// State of a training after some number of steps.
struct TrainingState {
  std::size_t step = 0;
  std::vector<float> values;
  Moments moments;
  std::vector<CurvePoint> curve;
};

/// The state before the first step.
[[nodiscard]] TrainingState initial_state(const Recipe& recipe);

/// Writes `state` with what identifies the job, atomically.
///
/// Errors    Io
void save_state(const std::filesystem::path& path, const Job& job, const TrainingState& state);

/// Reads a state back, bit by bit.
///
/// Errors    Io, Format; Argument when it belongs to another recipe, text or number of threads
[[nodiscard]] TrainingState load_state(const std::filesystem::path& path, const Job& job);

/// Runs the remaining steps; saves the state to `path` periodically and when `progress` cancels.
///
/// Errors    Cancelled, with the state saved; Io
void train(const Job& job, Network& network, TrainingState& state, const std::filesystem::path& path,
           const Progress& progress);

}  // namespace normscope::lab
