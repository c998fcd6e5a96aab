#pragma once

#include <memory>
#include <vector>

#include <normscope/lnnet/figures.hpp>
#include <normscope/lnnet/train.hpp>

#include "frame/experiment.hpp"

/// Trainings of LN-Nets (normscope/lnnet) as runs of an experiment.
namespace normscope::lab::nets {

/// What a configuration says of a net and its training, and back. The seed is the run's.
[[nodiscard]] Json to_json(const lnnet::TrainSpec& spec);
/// Errors    Argument for a name or number that is none
[[nodiscard]] lnnet::TrainSpec spec_of(const Run& run);

/// Trains the run's net. Measured are "loss" and "accuracy" of the batch, every few steps, and at the end
/// "train_accuracy", "test_accuracy" where there is `test`, "to_95" (the first step with 95 %), "transitions"
/// (how many), and of the largest "gain" and "gain_step" (both 0 where there is none).
/// Errors    Cancelled, from Run::reached; as lnnet::Trainer
/// Accuracy  a run that goes on from its progress measures the bits of one that was never stopped
///           (test: Nets.AStoppedTrainingGoesOnBitwise)
void train(Run& run, std::shared_ptr<const lnnet::Dataset> data, const lnnet::Dataset* test = nullptr);

/// How many runs have a last value of `metric` above `level`.
[[nodiscard]] std::size_t above(const Results& results, const char* metric, double level);
/// The middle of the runs' last values, the mean of two where they are even. Requires  a run
[[nodiscard]] double median(const Results& results, const char* metric);

/// The distribution over the runs of loss and accuracy at every step. Requires  runs of one configuration, at
/// least one
[[nodiscard]] Figure curves(const Results& results, const char* name, const std::string& caption);

}  // namespace normscope::lab::nets
