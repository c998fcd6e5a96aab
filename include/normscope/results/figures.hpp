#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <normscope/analysis/attribution.hpp>
#include <normscope/analysis/in_model.hpp>
#include <normscope/analysis/observer.hpp>
#include <normscope/analysis/ranges.hpp>
#include <normscope/analysis/report.hpp>
#include <normscope/analysis/trace.hpp>
#include <normscope/heads/heads.hpp>
#include <normscope/nets/construct.hpp>
#include <normscope/nets/net.hpp>
#include <normscope/nets/rnn/network.hpp>
#include <normscope/nets/train.hpp>
#include <normscope/nets/train_runs.hpp>
#include <normscope/norm/curvature.hpp>
#include <normscope/rewrite/compare.hpp>
#include <normscope/selectability/reach.hpp>
#include <normscope/selectability/select.hpp>
#include <normscope/signature/extract.hpp>

namespace normscope::figures {

/// The report's figures as Vega-Lite specifications with their data: an array of
/// {id, question, answer, description, spec}.
[[nodiscard]] nlohmann::ordered_json charts(const analysis::Report& report);

// Figures of single analyses, in the form of `charts`: empty arrays where there is nothing to draw.

/// Semi-axes of one norm's image by rank, "semi-axes".
///
/// Requires  descending and positive, with this median
[[nodiscard]] nlohmann::ordered_json image_charts(std::span<const double> semi_axes, double median);

/// Bounds of attention heads by layer, "head-spread", and of rotary ones over the distance, "head-distance".
[[nodiscard]] nlohmann::ordered_json head_charts(const models::Model& model,
                                                 const std::vector<heads::HeadReach>& heads);

/// Margins of the selectable keys, the largest first, "margins".
[[nodiscard]] nlohmann::ordered_json selection_charts(const selectability::Selection& selection);

/// Leads of the tokens, the smallest first, "leads". Tokens without a finite bound are left out.
[[nodiscard]] nlohmann::ordered_json reach_charts(const selectability::Survey& survey);

/// Rows of classes along a direction, as counts in equal bins, "along-direction", and the hyperplane between
/// two classes at `boundary`.
///
/// Shapes    along, class_of (rows)
[[nodiscard]] nlohmann::ordered_json separation_charts(std::span<const double> along,
                                                       std::span<const std::size_t> class_of,
                                                       std::optional<double> boundary);

/// The largest numbers behind norms beside the limits of small types, the cost of the worst case for a
/// quantizer, and rows that never change sign, in the form of `charts`. Readers of one role behind one norm,
/// such as experts, are one mark.
[[nodiscard]] nlohmann::ordered_json range_charts(const analysis::ModelRanges& found);

/// Figures of the rows that entered the norms of a model, in their order, as an array like that of `charts`.
/// Empty if no norm was called. With `within`, the selectable keys of its heads are included.
[[nodiscard]] nlohmann::ordered_json activation_charts(const std::vector<analysis::ObservedNorm>& norms,
                                                       const analysis::InModel* within = nullptr);

/// Differences of the gains, biases and composites of two checkpoints, norm by norm, in the form of `charts`.
/// Differences of 0 are left out, because the axis is logarithmic.
[[nodiscard]] nlohmann::ordered_json comparison_charts(const rewrite::Comparison& comparison);

/// The norms of two checkpoints next to each other, in the form of `charts`: their gains on one axis, gains
/// by coordinate, and, where both have norms of the same names, the condition numbers of their images.
[[nodiscard]] nlohmann::ordered_json side_by_side_charts(const analysis::Report& before,
                                                         const analysis::Report& after);

/// Attention weights as bars over the keys, coloured by whether a key can be selected at all, as a Vega-Lite
/// specification whose data set is called "weights".
///
/// Requires  one verdict per weight
[[nodiscard]] nlohmann::ordered_json attention_bars(std::span<const double> weights,
                                                    const selectability::Selection& selection);

/// What removing each component does to a logit, "attribution", the shares of layers at each position,
/// "attribution-positions", and the bounds over sets, "attribution-sets".
[[nodiscard]] nlohmann::ordered_json attribution_charts(const analysis::Attribution& attributed,
                                                        const std::vector<std::string>& names);

/// Figures of a text through a model, in the form of `charts`: what each norm divides each token by and
/// projects away, how far along its longest axes the tokens lie, the keys that each head can select, and the
/// likeliest next tokens. `names` are those of the tokens, empty if they are not known.
[[nodiscard]] nlohmann::ordered_json token_trace_charts(const analysis::TokenTrace& trace,
                                                        const std::vector<std::string>& names);

/// Singular values of outputs over their index, as a Vega-Lite specification with its data, with the rank of
/// the subspace and the level of rounding marked.
[[nodiscard]] nlohmann::ordered_json singular_values(const signature::Subspace& subspace);

/// The ratio of a norm's curvature in groups to that in one group, over the number of groups: mean and
/// minimum over the rows, and the proved bound, if there is one. A Vega-Lite specification with its data.
[[nodiscard]] nlohmann::ordered_json group_curvature(std::span<const norm::GroupCurvature> results);

/// The trace of a construction as a Vega-Lite specification with its data: for each fold, the smallest
/// distance between two classes (`nets::Fold::gap`; median and minimum over neighbouring layers) and the
/// number of runs left. Layers without a fold are marked.
[[nodiscard]] nlohmann::ordered_json folds(std::span<const nets::Fold> folds);

// The figures of normalization on a circle in [Winsor 2022], as Vega-Lite specifications.

[[nodiscard]] nlohmann::ordered_json stretched_circle();
[[nodiscard]] nlohmann::ordered_json folded_circle();
/// A heat map of x/sqrt(x² + y²), with the slices that the other two figures show.
[[nodiscard]] nlohmann::ordered_json circle_surface();

/// A network reading the member of its language with n of every letter: c of an lstm, h of other cells, one
/// line per unit over the letters read, with counters in colour and blocks separated; below, the output
/// probabilities. At most about 400 points per line.
///
/// Source    [Weiss, Goldberg, Yahav 2018, figure 1]
///
/// Errors    as `nets::rnn::accepts`
[[nodiscard]] nlohmann::ordered_json counting_trace(const nets::rnn::Network& network, std::size_t n);

/// A table of random keys (`selectability::random_table`) as a heat map, a Vega-Lite specification that holds
/// its data.
[[nodiscard]] nlohmann::ordered_json random_table(const std::vector<selectability::RandomCell>& cells,
                                                  double selectability::RandomCell::*share,
                                                  std::string_view title);

/// Draws an unfinished table: its axes cover all of `table`.
[[nodiscard]] nlohmann::ordered_json random_table(const selectability::RandomTable& table,
                                                  const std::vector<selectability::RandomCell>& cells,
                                                  double selectability::RandomCell::*share,
                                                  std::string_view title);

// Figures of a training as Vega-Lite specifications that hold their data.

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
