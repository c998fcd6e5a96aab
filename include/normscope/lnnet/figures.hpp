#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <normscope/lnnet/dataset.hpp>
#include <normscope/lnnet/net.hpp>
#include <normscope/lnnet/train.hpp>

/// Figures of a training as Vega-Lite specifications that hold their data, and the data of the
/// animation; each is JSON text.
namespace normscope::lnnet {

/// Loss and accuracy over the steps, with transitions marked. A page may replace the data sets "records"
/// {step, loss, accuracy}, "transitions" {step, gain} and "now" {step}, a mark that is initially empty.
/// Shapes    loss, accuracy (records)
[[nodiscard]] std::string curves_figure(std::span<const double> loss, std::span<const double> accuracy,
                                        std::size_t record_every, std::span<const Transition> marks,
                                        std::size_t steps = 0);

/// Records of a training, for a figure.
struct Curves {
  std::vector<double> step;
  std::vector<double> loss;
  std::vector<double> accuracy;
};

/// At most `most` + 1 records: every n-th and the last.
/// Shapes    loss, accuracy (records)
/// Requires  most >= 1
[[nodiscard]] Curves thinned(std::span<const double> loss, std::span<const double> accuracy,
                             std::size_t record_every, std::size_t most);

/// Records of one of several runs with the same settings.
struct RunCurves {
  std::span<const double> loss;
  std::span<const double> accuracy;
  std::vector<Transition> transitions;
};

/// The distribution of loss and accuracy over runs at every step: median, quartiles, and the tenth and
/// ninetieth percentile, with a mark for each run's transitions.
/// Shapes    every run has as many records
/// Requires  at least one run
[[nodiscard]] std::string seeds_figure(std::span<const RunCurves> runs, std::size_t record_every);

/// The result of a net with norms in `groups` blocks; 0 for a linear classifier.
struct GroupResult {
  std::size_t groups = 0;
  double accuracy = 0.0;
};

/// Accuracy over the number of groups, with the bound of the ratio of the Hessian measure to that of one
/// group.
/// Requires  the groups divide `width`
[[nodiscard]] std::string groups_figure(std::span<const GroupResult> results, NormKind norm,
                                        std::size_t width);

/// Samples of the plane over the classes that the net gives a grid of `cells` × `cells` points.
/// Requires  data.width == 2
/// Errors    Shape, Argument: see `evaluate`
[[nodiscard]] std::string boundary_figure(const Net& net, const Dataset& data, std::size_t cells = 80);

/// Rows after every layer, padded to the width of the widest: entry 0 is the input, entry l the output of
/// layer l.
struct MorphStates {
  std::size_t width = 0;
  std::vector<std::vector<double>> list{};
};

/// Shapes    x (rows, net.in()) → layers + 1 times rows × width
/// Errors    Shape, Argument: see `evaluate`
[[nodiscard]] MorphStates morph_states(const Net& net, MatrixView<const double> x);

/// Data of the animation from layer to layer: {"schema", "width", "labels": [rows], "states": [[[x, y, …]]]},
/// the samples, padded with zeros to the widest layer, and then every layer's output, each to four decimals
/// (docs/schemas/morph.schema.json). Frames in between are `morph_frame`.
/// Source    [Winsor 2022], the morphs of spiral and sphere
/// Errors    Shape, Argument: see `evaluate`
[[nodiscard]] std::string morph(const Net& net, const Dataset& data);

/// Positions of the samples at time `at` in [l, l + 1]:  (1 − (at − l)) states[l] + (at − l) states[l + 1].
/// Shapes    rows × widest layer
/// Requires  0 <= at <= layers
[[nodiscard]] std::vector<double> morph_frame(const Net& net, const Dataset& data, double at);

}  // namespace normscope::lnnet
