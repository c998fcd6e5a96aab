#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include <normscope/core/progress.hpp>

#include "adamw.hpp"
#include "network.hpp"
#include "recipe.hpp"
#include "words.hpp"

namespace normscope::lab {

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
