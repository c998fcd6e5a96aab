#include <emscripten/bind.h>
#include <nlohmann/json.hpp>

#include <normscope/core/random.hpp>
#include <normscope/nets/construct.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/nets/scatter.hpp>
#include <normscope/norm/curvature.hpp>
#include <normscope/results/documents.hpp>
#include <normscope/results/figures.hpp>

#include "values.hpp"

namespace normscope::wasm {
namespace {

using nets::Fold;
using nets::Mode;

Mode mode_of(const std::string& name) { return name == "paper" ? Mode::paper : Mode::stable; }

std::vector<std::int64_t> labels_of(const val& values) {
  const std::vector<double> found = numbers(values);
  return {found.begin(), found.end()};
}

MatrixView<const double> matrix(const std::vector<double>& values, std::size_t width) {
  if (width == 0 || values.size() % width != 0) throw Error(ErrorCode::Shape, "points: expected whole rows");
  return {values.data(), values.size() / width, width};
}

/// {ssr, lssr, direction}
val ratios(const val& x, double width, const val& labels) {
  return guarded([&] {
    const std::vector<double> values = numbers(x);
    const std::vector<double> given = numbers(labels);
    const std::vector<std::size_t> classes(given.begin(), given.end());
    const MatrixView<const double> rows = matrix(values, static_cast<std::size_t>(width));
    const nets::LinearRatio linear = nets::linear_ratio(rows, classes, 1);
    val result = val::object();
    result.set("ssr", nets::sum_of_squares_ratio(rows, classes, 1));
    result.set("lssr", linear.ratio);
    result.set("direction", float64_array(linear.direction));
    return result;
  });
}

/// {linear, neurons: (rows × 3), circle: (rows × 2), curvature: (rows)} of one layer that folds the line
/// direction.x; curvature is the norm's at the neurons before it.
val fold_once(const val& x, const val& direction, double midpoint, double radius) {
  return guarded([&] {
    const std::vector<double> along = numbers(direction);
    const std::vector<double> values = numbers(x);
    const MatrixView<const double> rows = matrix(values, along.size());
    nets::Net net;
    net.layers = {nets::one_fold(along, midpoint, radius)};
    net.head = {.in = 3, .out = 1, .weight = {0.0, 0.0, 1.0}, .bias = {0.0}};
    const std::vector<double> neurons = nets::trace(net, rows, 1).front();
    net.layers.front().activation = nets::Activation::none;
    std::vector<double> circle;
    for (std::size_t row = 0; row < rows.rows(); ++row) {
      for (const double value : nets::circle_point(Mode::paper, {neurons.data() + 3 * row, 3})) {
        circle.push_back(value);
      }
    }
    val result = val::object();
    const std::vector<double> linear = nets::trace(net, rows, 1).front();
    result.set("linear", float64_array(linear));
    const NormSpec norm{.kind = NormKind::layer, .width = 3, .eps = 0.0};
    result.set("curvature", float64_array(norm::curvature(norm, matrix(linear, 3), 1)));
    result.set("neurons", float64_array(neurons));
    result.set("circle", float64_array(circle));
    return result;
  });
}

val fold_object(const Fold& fold) {
  val result = val::object();
  const bool merges = fold.first != nets::no_row;
  result.set("first", merges ? val(static_cast<double>(fold.first)) : val::null());
  result.set("second", merges ? val(static_cast<double>(fold.second)) : val::null());
  result.set("midpoint", fold.midpoint);
  result.set("radius", fold.radius);
  result.set("runs", static_cast<double>(fold.runs));
  return result;
}

/// {folds, places, neurons, circle, direction, correct, total, figure}
val merge(const val& x, const val& labels, const std::string& mode, double seed) {
  return guarded([&] {
    const std::vector<double> values = numbers(x);
    const MatrixView<const double> rows = matrix(values, 2);
    const nets::Construction made = nets::construct(rows, labels_of(labels),
                                                    {.mode = mode_of(mode),
                                                     .seed = static_cast<std::uint64_t>(seed),
                                                     .first_label_wins = true,
                                                     .threads = 1});
    const nets::MergeTrace story = nets::merge_trace(made, mode_of(mode), rows);
    val folds = val::array();
    for (const Fold& fold : made.folds) folds.call<void>("push", fold_object(fold));
    val result = val::object();
    result.set("folds", folds);
    result.set("places", float64_array(story.places));
    result.set("neurons", float64_array(story.neurons));
    result.set("circle", float64_array(story.circle));
    result.set("direction", float64_array(story.direction));
    result.set("correct", static_cast<double>(made.correct));
    result.set("total", static_cast<double>(made.total));
    result.set("figure", json_text(figures::folds(made.folds)));
    return result;
  });
}

/// Where a fold puts each of some places.
val folded(const std::string& mode, double midpoint, double radius, const val& places) {
  return guarded([&] {
    std::vector<double> values = numbers(places);
    Fold fold;
    fold.midpoint = midpoint;
    fold.radius = radius;
    for (double& value : values) value = nets::folded_place(mode_of(mode), fold, value);
    return float64_array(values);
  });
}

val random_labels(double count, double classes, double seed) {
  Random random(static_cast<std::uint64_t>(seed));
  std::vector<double> labels(static_cast<std::size_t>(count));
  for (double& label : labels) label = static_cast<double>(random.below(static_cast<std::uint64_t>(classes)));
  return float64_array(labels);
}

/// {groups: [{groups, ratio, least, bound}], figure} over normal rows of that seed.
val curvature(const val& spec, double rows, double seed) {
  return guarded([&] {
    const NormSpec norm = norm_spec(spec);
    Random random(static_cast<std::uint64_t>(seed));
    std::vector<double> x(static_cast<std::size_t>(rows) * norm.width);
    for (double& value : x) value = random.normal();
    const std::vector<norm::GroupCurvature> results = norm::compare_groups(
        norm, matrix(x, norm.width), norm::curving_group_counts(norm.kind, norm.width), 1);
    val groups = val::array();
    for (const norm::GroupCurvature& result : results) {
      val entry = val::object();
      entry.set("groups", static_cast<double>(result.groups));
      entry.set("ratio", result.ratio);
      entry.set("least", result.least);
      entry.set("bound", result.bound ? val(*result.bound) : val::null());
      groups.call<void>("push", entry);
    }
    val result = val::object();
    result.set("groups", groups);
    result.set("figure", json_text(figures::group_curvature(results)));
    return result;
  });
}

}  // namespace

EMSCRIPTEN_BINDINGS(nonlinearity) {
  emscripten::function("classRatios", &ratios);
  emscripten::function("foldOnce", &fold_once);
  emscripten::function("mergePoints", &merge);
  emscripten::function("foldedPlaces", &folded);
  emscripten::function("randomLabels", &random_labels);
  emscripten::function("groupCurvature", &curvature);
}

}  // namespace normscope::wasm
