#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include <normscope/nets/train.hpp>

#include "frame/experiment.hpp"

/// Trainings of LN-Nets (normscope/lnnet) as runs of an experiment.
namespace normscope::lab::ln_nets {

/// Conversion between a configuration and the spec of a net and its training. The seed is the run's.
[[nodiscard]] Json to_json(const nets::TrainSpec& spec);
/// Errors    Argument for an invalid name or number
[[nodiscard]] nets::TrainSpec spec_of(const Run& run);

/// Samples that a net is not trained on, and the metric that its accuracy on them is measured as.
struct HeldOut {
  const char* metric;
  const nets::Dataset& data;
};

/// Trains the run's net. Measures "loss" and "accuracy" of the batch every few steps, and at the end
/// "train_accuracy", the accuracies on `held_out`, "to_95" (the first step with 95 %), "transitions"
/// (their number), and "gain" and "gain_step" of the largest (0 if there is none).
///
/// Errors    Cancelled, from Run::reached; as nets::Trainer
///
/// Accuracy  an interrupted run measures the same bits as an uninterrupted one (test:
///           Nets.InterruptedTrainingResumesBitwise)
void train(Run& run, std::shared_ptr<const nets::Dataset> data, std::initializer_list<HeldOut> held_out = {});

/// The values of a metric of a run in the order of steps.
[[nodiscard]] std::vector<double> curve(const Done& run, std::string_view metric);
/// Number of steps between two stored points of a run's curves.
[[nodiscard]] std::size_t steps_between_points(const Json& configuration);

/// Number of runs whose last value of `metric` is above `level`.
[[nodiscard]] std::size_t above(const Results& results, const char* metric, double level);
/// Requires  at least one value
[[nodiscard]] double median(std::vector<double> values);
/// The median of the runs' last values.
///
/// Requires  at least one run
[[nodiscard]] double median(const Results& results, const char* metric);

/// The distribution of loss and accuracy over the runs at every step.
///
/// Requires  at least one run, all of one
///           configuration
[[nodiscard]] Figure curves(const Results& results, const char* name, const std::string& caption);

}  // namespace normscope::lab::ln_nets

/// Plateaus of a loss curve, after which the loss falls: the phase transitions that Winsor 2022 describes.
namespace normscope::lab::ln_nets {

/// What counts as a plateau and as the fall at its end.
struct PlateauConstants {
  std::size_t plateau_steps = 600;
  std::size_t fall_steps = 300;
  double fall_to = 0.7;  ///< of the least loss of the plateau
};

struct Plateau {
  std::size_t last = 0;  ///< its last step
  double loss = 0.0;     ///< the median of its last `plateau_steps`
};

/// Plateaus that end with a fall. Losses are replaced by medians over 300 steps, so that the noise of batches
/// and single spikes do not count. The loss is on a plateau if these medians stay within 15 % of their own
/// median for `plateau_steps`, and falls if within another `fall_steps` one is at most `fall_to` times the
/// least of the plateau. Constant, linear, exponential and hyperbolic curves have none (test:
/// Plateaus.SteadyDecreaseHasNone).
///
/// Requires  `loss` of every `every`-th step, every >= 1
[[nodiscard]] std::vector<Plateau> plateaus(std::span<const double> loss, std::size_t every,
                                            const PlateauConstants& constants = {});

}  // namespace normscope::lab::ln_nets
