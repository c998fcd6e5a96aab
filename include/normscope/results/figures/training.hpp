#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/nets/dataset.hpp>
#include <normscope/nets/net.hpp>
#include <normscope/nets/train_runs.hpp>

/// Figures of a training as Vega-Lite specifications that hold their data.
namespace normscope::figures {

/// Loss and accuracy over the steps, with transitions marked. A page may replace the data sets "records"
/// {step, loss, accuracy}, "transitions" {step, gain} and "now" {step}, a mark that is initially empty.
///
/// Shapes    loss, accuracy (records)
[[nodiscard]] nlohmann::ordered_json training_curves(std::span<const double> loss,
                                                     std::span<const double> accuracy,
                                                     std::size_t record_every,
                                                     std::span<const nets::Transition> marks,
                                                     std::size_t steps = 0);

/// Records of one of several runs with the same settings.
struct RunCurves {
  std::span<const double> loss;
  std::span<const double> accuracy;
  std::vector<nets::Transition> transitions;
};

/// The distribution of loss and accuracy over runs at every step: median, quartiles, and the tenth and
/// ninetieth percentile, with a mark for each run's transitions.
///
/// Shapes    every run has as many records
///
/// Requires  at least one run
[[nodiscard]] nlohmann::ordered_json training_seeds(std::span<const RunCurves> runs,
                                                    std::size_t record_every);

/// The result of a net with norms in `groups` blocks; 0 for a linear classifier.
struct GroupResult {
  std::size_t groups = 0;
  double accuracy = 0.0;
};

/// Accuracy over the number of groups, with the bound of the ratio of the Hessian measure to that of one
/// group.
///
/// Requires  the groups divide `width`
[[nodiscard]] nlohmann::ordered_json accuracy_over_groups(std::span<const GroupResult> results, NormKind norm,
                                                          std::size_t width);

/// Samples of the plane over the classes that the net gives a grid of `cells` × `cells` points.
///
/// Requires  data.width == 2
///
/// Errors    Shape, Argument: see `nets::evaluate`
[[nodiscard]] nlohmann::ordered_json decision_boundary(const nets::Net& net, const nets::Dataset& data,
                                                       std::size_t cells = 80);

/// The figures of several runs, by name: the "curves" of the best, its "boundary" for samples of the plane,
/// "seeds" if several runs differ in their seed only, and "groups" if their numbers of groups differ.
///
/// Requires  at least one run
[[nodiscard]] std::vector<std::pair<std::string, nlohmann::ordered_json>> training_charts(
    const std::vector<nets::TrainRun>& runs);

}  // namespace normscope::figures
