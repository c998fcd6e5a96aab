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
#include "words.hpp"

namespace normscope::lab {

/// Nats per character of `words`, each scored separately: the mean of −ln p over its letters and the newline
/// that ends it.
[[nodiscard]] double model_loss(Network& network, std::span<const float> values,
                                std::span<const std::string> words);

/// The loss of counts of `training`: p(next | the `order` characters before it), one added to
/// every count. Order 0 is the unigram model, 1 the bigram model.
[[nodiscard]] double count_loss(std::span<const std::string> training, std::span<const std::string> words,
                                std::size_t order);

/// A word that begins with `prefix`: each next letter is drawn from p^(1/temperature), or is the
/// likeliest one where the temperature is 0. Ends at a newline or at the context's end.
[[nodiscard]] std::string sample_word(Network& network, const Recipe& recipe, std::span<const float> values,
                                      const std::string& prefix, double temperature, Random& random);

/// A point of the training curve, in nats per character.
struct CurvePoint {
  std::size_t step = 0;
  double training_loss = 0.0;
  double validation_loss = 0.0;
};

/// The inputs of a training. On one machine, equal jobs give equal parameters, bit by bit.
struct Job {
  Recipe recipe;
  WordLists words;
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
/// Errors    Io, Format; Argument when it belongs to another recipe, word list or number of threads
[[nodiscard]] TrainingState load_state(const std::filesystem::path& path, const Job& job);

/// Runs the remaining steps; saves the state to `path` periodically and when `progress` cancels.
///
/// Errors    Cancelled, with the state saved; Io
void train(const Job& job, Network& network, TrainingState& state, const std::filesystem::path& path,
           const Progress& progress);

}  // namespace normscope::lab
