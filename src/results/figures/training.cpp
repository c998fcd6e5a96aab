#include <normscope/results/figures.hpp>

#include <algorithm>
#include <map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/nets/answers.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/norm/curvature.hpp>
#include <normscope/results/figures/vega.hpp>

// Figures of several runs, over seeds and over the number of groups.

namespace normscope::figures {
namespace {

using Json = nlohmann::ordered_json;
using nets::Transition;
using vega::ordinal;
using vega::quantity;
using vega::values;

/// Number of points of a curve that a screen can show.
constexpr std::size_t most_records = 400;

/// Quantile of sorted numbers, interpolated linearly.
double quantile(const std::vector<double>& sorted, double level) {
  const double at = level * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

Json quantiles(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return {{"low", quantile(numbers, 0.1)},
          {"lower", quantile(numbers, 0.25)},
          {"median", quantile(numbers, 0.5)},
          {"upper", quantile(numbers, 0.75)},
          {"high", quantile(numbers, 0.9)}};
}

Json band(const char* low, const char* high, double opacity, Json y) {
  y["field"] = low;
  return {{"mark", {{"type", "area"}, {"opacity", opacity}}},
          {"encoding", {{"y", std::move(y)}, {"y2", {{"field", high}}}}}};
}

Json distribution(Json rows, Json marks, const Json& y) {
  Json middle = y;
  middle["field"] = "median";
  return {
      {"width", 560},
      {"height", 180},
      {"encoding", {{"x", ordinal("step", "step")}}},
      {"layer",
       {{{"data", values(std::move(rows))},
         {"layer",
          {band("low", "high", 0.2, y),
           band("lower", "upper", 0.35, y),
           {{"mark", {{"type", "line"}, {"strokeWidth", 1.6}}}, {"encoding", {{"y", std::move(middle)}}}}}}},
        {{"data", values(std::move(marks))},
         {"mark",
          {{"type", "tick"}, {"color", "tomato"}, {"thickness", 1.5}, {"height", 10}, {"yOffset", -5}}},
         {"encoding",
          {{"y", {{"value", 180}}},
           {"tooltip", {quantity("step", "transition"), quantity("gain", "gain of accuracy")}}}}}}}};
}

}  // namespace

Json training_seeds(std::span<const RunCurves> runs, std::size_t record_every) {
  NORMSCOPE_ASSERT(!runs.empty());
  const std::size_t records = runs.front().loss.size();
  const std::size_t stride = std::max<std::size_t>(1, (records + most_records - 1) / most_records);
  Json losses = Json::array();
  Json accuracies = Json::array();
  Json marks = Json::array();
  double least = 1.0;
  for (std::size_t i = 0; i < records; i += stride) {
    std::vector<double> loss;
    std::vector<double> accuracy;
    for (const RunCurves& run : runs) {
      NORMSCOPE_ASSERT(run.loss.size() == records && run.accuracy.size() == records);
      loss.push_back(run.loss[i]);
      accuracy.push_back(run.accuracy[i]);
      least = std::min(least, run.loss[i]);
    }
    losses.push_back(quantiles(std::move(loss)));
    accuracies.push_back(quantiles(std::move(accuracy)));
    losses.back()["step"] = accuracies.back()["step"] = i * record_every;
  }
  for (const RunCurves& run : runs) {
    for (const Transition& mark : run.transitions) {
      marks.push_back({{"step", mark.step}, {"gain", rounded_to_four_decimals(mark.gain)}});
    }
  }
  Json loss_axis = {{"type", "quantitative"}, {"title", "loss"}};
  // A loss of exactly zero cannot be shown on a logarithmic axis.
  if (least > 0.0) loss_axis["scale"] = {{"type", "log"}};
  const Json accuracy_axis = {
      {"type", "quantitative"}, {"title", "accuracy"}, {"scale", {{"domain", {0, 1}}}}};
  return vega::specification(
      {{"title",
        {{"text", fmt::format("Loss and accuracy of {} runs", runs.size())},
         {"subtitle", "Median; 25 to 75 % dark, 10 to 90 % light; a red tick for each transition"}}},
       {"description", "Distribution over runs of loss and accuracy during training."},
       {"vconcat",
        {distribution(std::move(losses), marks, loss_axis),
         distribution(std::move(accuracies), marks, accuracy_axis)}}});
}

Json accuracy_over_groups(std::span<const GroupResult> results, NormKind norm, std::size_t width) {
  Json runs = Json::array();
  Json medians = Json::array();
  Json linear = Json::array();
  Json bounds = Json::array();
  std::map<std::size_t, std::vector<double>> by_groups;
  for (const GroupResult& result : results) by_groups[result.groups].push_back(result.accuracy);
  for (auto& [groups, accuracies] : by_groups) {
    std::sort(accuracies.begin(), accuracies.end());
    const double median = quantile(accuracies, 0.5);
    if (groups == 0) {
      linear.push_back({{"accuracy", median}, {"what", "linear classifier"}});
      continue;
    }
    for (const double accuracy : accuracies) runs.push_back({{"groups", groups}, {"accuracy", accuracy}});
    medians.push_back({{"groups", groups}, {"accuracy", median}, {"what", "LN-Net, LN-G"}});
    const auto bound =
        norm::curvature_ratio_bound({.kind = norm, .width = width, .groups = groups, .eps = 0.0});
    if (bound) bounds.push_back({{"groups", groups}, {"bound", rounded_to_four_decimals(*bound)}});
  }
  Json x = quantity("groups", "groups");
  // One domain for both panels, although not every count has a bound.
  const std::size_t most = by_groups.rbegin()->first;
  x["scale"] = {{"type", "log"}, {"base", 2}, {"domain", {1, std::max<std::size_t>(most, 2)}}};
  Json y = quantity("accuracy", "training accuracy");
  y["scale"] = {{"domain", {0, 1}}};
  y["axis"] = {{"format", "%"}};
  const Json colour = {{"field", "what"}, {"type", "nominal"}, {"title", nullptr}};
  return vega::specification(
      {{"title", "Training accuracy over the number of groups"},
       {"description", "Training accuracy by groups of the norm, and the bound of its curvature."},
       {"vconcat",
        {{{"width", 420},
          {"height", 220},
          {"encoding", {{"y", y}}},
          {"layer",
           {{{"data", values(std::move(runs))},
             {"mark", {{"type", "point"}, {"size", 24}}},
             {"encoding", {{"x", x}}}},
            {{"data", values(std::move(medians))},
             {"mark", {{"type", "line"}, {"point", true}}},
             {"encoding", {{"x", x}, {"color", colour}}}},
            {{"data", values(std::move(linear))},
             {"mark", {{"type", "rule"}, {"strokeDash", {5, 4}}}},
             {"encoding", {{"color", colour}}}}}}},
         {{"width", 420},
          {"height", 110},
          {"data", values(std::move(bounds))},
          {"mark", {{"type", "line"}, {"point", true}}},
          {"encoding", {{"x", x}, {"y", quantity("bound", "least curvature ratio")}}}}}}});
}

std::vector<std::pair<std::string, Json>> training_charts(const std::vector<nets::TrainRun>& runs) {
  const nets::TrainRun& best = nets::best_of(runs);
  const nets::Dataset& data = best.trainer.data();
  const std::size_t every = best.spec().record_every;
  std::vector<std::pair<std::string, Json>> charts;
  charts.emplace_back(
      "curves", training_curves(best.trainer.loss(), best.trainer.accuracy(), every, best.transitions()));
  if (data.width == 2) charts.emplace_back("boundary", decision_boundary(best.trainer.net(), data));
  std::vector<RunCurves> alike;
  std::vector<GroupResult> results;
  bool swept = false;
  for (const nets::TrainRun& run : runs) {
    results.push_back({.groups = run.linear() ? 0 : run.spec().groups, .accuracy = run.score.accuracy});
    const bool same = run.spec().groups == best.spec().groups && run.linear() == best.linear();
    swept = swept || !same;
    if (same) alike.push_back({run.trainer.loss(), run.trainer.accuracy(), run.transitions()});
  }
  if (alike.size() > 1) charts.emplace_back("seeds", training_seeds(alike, every));
  if (swept) {
    charts.emplace_back("groups", accuracy_over_groups(results, best.spec().norm, best.spec().width));
  }
  return charts;
}

namespace {

using Json = nlohmann::ordered_json;
using nets::Dataset;
using nets::Grid;
using nets::grid_around;
using nets::labels;
using nets::Net;
using nets::Transition;
using vega::ordinal;
using vega::quantity;
using vega::values;

/// Data of a figure that a page may replace during a training.
Json named(const char* name) { return {{"name", name}}; }

Json panel(std::size_t steps, Json y) {
  Json step = ordinal("step", "step");
  if (steps > 0) step["scale"] = {{"domain", {0, steps}}, {"nice", false}};
  return {{"width", 560},
          {"height", 180},
          {"layer",
           {{{"data", named("records")},
             {"mark", {{"type", "line"}, {"strokeWidth", 1.2}}},
             {"encoding", {{"x", step}, {"y", std::move(y)}}}},
            {{"data", named("transitions")},
             {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"color", "firebrick"}}},
             {"encoding",
              {{"x", step},
               {"tooltip", {quantity("step", "transition"), quantity("gain", "gain of accuracy")}}}}},
            {{"data", named("now")}, {"mark", {{"type", "rule"}}}, {"encoding", {{"x", step}}}}}}};
}

}  // namespace

Json training_curves(std::span<const double> loss, std::span<const double> accuracy, std::size_t record_every,
                     std::span<const Transition> marks, std::size_t steps) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < loss.size(); ++i) {
    rows.push_back({{"step", i * record_every}, {"loss", loss[i]}, {"accuracy", accuracy[i]}});
  }
  Json rules = Json::array();
  for (const Transition& mark : marks)
    rules.push_back({{"step", mark.step}, {"gain", rounded_to_four_decimals(mark.gain)}});
  Json losses = quantity("loss", "loss");
  // A loss of exactly zero cannot be shown on a logarithmic axis.
  if (std::all_of(loss.begin(), loss.end(), [](double value) { return value > 0.0; })) {
    losses["scale"] = {{"type", "log"}};
  }
  Json accuracies = quantity("accuracy", "accuracy");
  accuracies["scale"] = {{"domain", {0, 1}}};
  return vega::specification(
      {{"title", "Loss and accuracy over training"},
       {"description", "Loss and accuracy over training; dashed where the accuracy jumps."},
       {"datasets",
        {{"records", std::move(rows)}, {"transitions", std::move(rules)}, {"now", Json::array()}}},
       {"vconcat", {panel(steps, losses), panel(steps, accuracies)}}});
}

Json decision_boundary(const Net& net, const Dataset& data, std::size_t cells) {
  NORMSCOPE_ASSERT(data.width == 2 && cells >= 1);
  const Grid grid = grid_around(data, cells);
  const double dx = grid.dx();
  const double dy = grid.dy();
  const std::vector<double> centers = grid.centers();
  const std::vector<std::int64_t> classes = labels(net, {centers.data(), cells * cells, 2});
  Json areas = Json::array();
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const double x = centers[2 * i] - 0.5 * dx;
    const double y = centers[2 * i + 1] - 0.5 * dy;
    areas.push_back({{"x", rounded_to_four_decimals(x)},
                     {"x2", rounded_to_four_decimals(x + dx)},
                     {"y", rounded_to_four_decimals(y)},
                     {"y2", rounded_to_four_decimals(y + dy)},
                     {"class", classes[i]}});
  }
  Json points = Json::array();
  for (std::size_t row = 0; row < data.rows(); ++row) {
    points.push_back({{"x", rounded_to_four_decimals(data.view().row(row)[0])},
                      {"y", rounded_to_four_decimals(data.view().row(row)[1])},
                      {"class", data.labels[row]}});
  }
  const Json colour = {{"field", "class"}, {"type", "nominal"}, {"title", "class"}};
  const auto axis = [](const char* field) {
    Json result = quantity(field, field);
    result["scale"] = {{"zero", false}, {"nice", false}};
    return result;
  };
  return vega::specification(
      {{"title", "Samples over the classes that the net gives the plane"},
       {"description", "Samples over the classes that the net gives the plane."},
       {"width", 420},
       {"height", 420},
       {"layer",
        {{{"data", values(std::move(areas))},
          {"mark", {{"type", "rect"}, {"opacity", 0.25}}},
          {"encoding",
           {{"x", axis("x")},
            {"x2", {{"field", "x2"}}},
            {"y", axis("y")},
            {"y2", {{"field", "y2"}}},
            {"color", colour}}}},
         {{"data", values(std::move(points))},
          {"mark", {{"type", "point"}, {"filled", true}, {"size", 22}, {"opacity", 1}}},
          {"encoding", {{"x", axis("x")}, {"y", axis("y")}, {"color", colour}}}}}}});
}

}  // namespace normscope::figures
