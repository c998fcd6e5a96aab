#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <normscope/nets/majority.hpp>

#include "frame/experiment.hpp"

/// Trainings of the majority task as runs of an experiment.
namespace normscope::lab::majority {

using nets::majority::AttentionMeasures;
using nets::majority::Eight;
using nets::majority::Outcome;
using nets::majority::Three;
using nets::majority::Training;

/// Losses, accuracies and attention at a training's step.
template <class Size>
void measure(Run& run, Training<Size>& training) {
  const std::size_t step = training.step();
  if (step > 0) {
    const Outcome trained = training.trained();
    run.measure("loss", step, trained.loss);
    run.measure("accuracy", step, trained.right);
  }
  const Outcome tested = training.tested();
  run.measure("test_loss", step, tested.loss);
  run.measure("test_accuracy", step, tested.right);
  const AttentionMeasures attention = training.attention();
  run.measure("query_angle", step, attention.angle);
  run.measure("query_length", step, attention.query_length);
  run.measure("key_length", step, attention.key_length);
  run.measure("key_spread", step, attention.key_spread);
  run.measure("divergence", step, attention.divergence);
}

/// Trains the network of the run's configuration to its last step. `after` is called at step 0 and after
/// every step, to measure.
template <class Size>
void train(Run& run, const std::function<void(Training<Size>&)>& after) {
  const auto steps = run.get<std::size_t>("steps");
  Training<Size> training({.task = {.classes = Size::classes,
                                    .length = run.get<std::size_t>("length"),
                                    .sequences = run.get<std::size_t>("sequences"),
                                    .lead = run.get<std::size_t>("lead")},
                           .norm = {.projects = run.get<bool>("projects"),
                                    .squared_length = run.get<double>("squared_length"),
                                    .by_deviation = run.get<bool>("by_deviation")},
                           .batch = run.get<std::size_t>("batch"),
                           .rate = run.get<double>("rate"),
                           .schedule_epochs = run.get<double>("schedule_epochs"),
                           .read_sequences = run.get<std::size_t>("read_sequences")},
                          run.seed());
  if (run.step() > 0) {
    training.restore(run.step(), run.progress());
  } else {
    after(training);
  }
  while (training.step() < steps) {
    training.advance();
    after(training);
    run.reached(training.step(), steps, [&] { return training.progress(); });
  }
}

// The trainings of figures 2 and 3, whose claims and replications are experiments of their own.

inline constexpr const char* layer_norm = "LayerNorm";
inline constexpr const char* matched = "no projection, length sqrt(d)";

/// Steps at which the paper's curves are read; the last is the end, the paper's is 17,000.
inline constexpr std::uint64_t early = 1554;
inline constexpr std::uint64_t late = 5180;
inline constexpr std::uint64_t end = 17020;

/// `squared_length` is that of the keys.
inline Json configuration(const char* arm, bool projects, double squared_length, lab::Size size,
                          bool by_deviation = false) {
  const bool full = size == lab::Size::full;
  return {{"arm", arm},
          {"projects", projects},
          {"squared_length", squared_length},
          {"by_deviation", by_deviation},
          {"steps", full ? end : 296},
          {"sequences", full ? 100000 : 12000},
          {"length", 50},
          {"lead", 6},
          {"batch", full ? 6000 : 1200},
          {"rate", 1e-3},
          {"schedule_epochs", 10000},
          {"measure_every", 74},
          {"read_sequences", full ? 1000 : 200}};
}

/// Trains such a configuration; after `late` it measures an eighth as often.
inline void train_eight(Run& run) {
  constexpr std::size_t rarely = 8;
  const auto steps = run.get<std::size_t>("steps");
  const auto every = run.get<std::size_t>("measure_every");
  train<Eight>(run, [&](Training<Eight>& training) {
    const std::size_t stride = training.step() > late ? rarely * every : every;
    if (training.step() % stride == 0 || training.step() == steps) measure(run, training);
  });
}

}  // namespace normscope::lab::majority
