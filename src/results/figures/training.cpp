#include <normscope/results/figures/training.hpp>

#include <algorithm>

#include <nlohmann/json.hpp>

#include <normscope/core/assert.hpp>
#include <normscope/core/rounded.hpp>
#include <normscope/nets/answers.hpp>
#include <normscope/nets/evaluate.hpp>
#include <normscope/results/figures/vega.hpp>

namespace normscope::figures {
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
