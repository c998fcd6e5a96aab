#include <normscope/lnnet/figures.hpp>

#include <algorithm>

#include <normscope/core/assert.hpp>
#include <normscope/lnnet/answers.hpp>
#include <normscope/lnnet/evaluate.hpp>

#include "figure_parts.hpp"

namespace normscope::lnnet {
namespace {

using detail::Json;
using detail::quantity;
using detail::shortened;
using detail::specification;
using detail::values;

/// Data of a figure that a page may replace during a training.
Json named(const char* name) { return {{"name", name}}; }

Json panel(std::size_t steps, Json y) {
  Json step = quantity("step", "step");
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

std::string curves_figure(std::span<const double> loss, std::span<const double> accuracy,
                          std::size_t record_every, std::span<const Transition> marks, std::size_t steps) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < loss.size(); ++i) {
    rows.push_back({{"step", i * record_every}, {"loss", loss[i]}, {"accuracy", accuracy[i]}});
  }
  Json rules = Json::array();
  for (const Transition& mark : marks) rules.push_back({{"step", mark.step}, {"gain", shortened(mark.gain)}});
  Json losses = quantity("loss", "loss");
  // A loss of exactly zero cannot be shown on a logarithmic axis.
  if (std::all_of(loss.begin(), loss.end(), [](double value) { return value > 0.0; })) {
    losses["scale"] = {{"type", "log"}};
  }
  Json accuracies = quantity("accuracy", "accuracy");
  accuracies["scale"] = {{"domain", {0, 1}}};
  return specification(
             {{"title", "Loss and accuracy over training"},
              {"description", "Loss and accuracy over training; dashed where the accuracy jumps."},
              {"datasets",
               {{"records", std::move(rows)}, {"transitions", std::move(rules)}, {"now", Json::array()}}},
              {"vconcat", {panel(steps, losses), panel(steps, accuracies)}}})
      .dump();
}

Curves thinned(std::span<const double> loss, std::span<const double> accuracy, std::size_t record_every,
               std::size_t most) {
  NORMSCOPE_ASSERT(most >= 1 && loss.size() == accuracy.size());
  const std::size_t stride = std::max<std::size_t>(1, (loss.size() + most - 1) / most);
  Curves shown;
  const auto add = [&](std::size_t i) {
    shown.step.push_back(static_cast<double>(i * record_every));
    shown.loss.push_back(loss[i]);
    shown.accuracy.push_back(accuracy[i]);
  };
  for (std::size_t i = 0; i < loss.size(); i += stride) add(i);
  if (!loss.empty() && (loss.size() - 1) % stride != 0) add(loss.size() - 1);
  return shown;
}

std::string boundary_figure(const Net& net, const Dataset& data, std::size_t cells) {
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
    areas.push_back({{"x", shortened(x)},
                     {"x2", shortened(x + dx)},
                     {"y", shortened(y)},
                     {"y2", shortened(y + dy)},
                     {"class", classes[i]}});
  }
  Json points = Json::array();
  for (std::size_t row = 0; row < data.rows(); ++row) {
    points.push_back({{"x", shortened(data.view().row(row)[0])},
                      {"y", shortened(data.view().row(row)[1])},
                      {"class", data.labels[row]}});
  }
  const Json colour = {{"field", "class"}, {"type", "nominal"}, {"title", "class"}};
  const auto axis = [](const char* field) {
    Json result = quantity(field, field);
    result["scale"] = {{"zero", false}, {"nice", false}};
    return result;
  };
  return specification({{"title", "Samples over the classes that the net gives the plane"},
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
                           {"encoding", {{"x", axis("x")}, {"y", axis("y")}, {"color", colour}}}}}}})
      .dump();
}

MorphStates morph_states(const Net& net, MatrixView<const double> x) {
  MorphStates states{.width = x.width()};
  for (const Layer& layer : net.layers) states.width = std::max(states.width, layer.out);
  const auto add = [&](std::span<const double> entries, std::size_t features) {
    std::vector<double>& state = states.list.emplace_back(x.rows() * states.width);
    for (std::size_t row = 0; row < x.rows(); ++row) {
      for (std::size_t i = 0; i < features; ++i) state[row * states.width + i] = entries[row * features + i];
    }
  };
  add({x.data(), x.rows() * x.width()}, x.width());
  const std::vector<std::vector<double>> outputs = trace(net, x);
  for (std::size_t l = 0; l < outputs.size(); ++l) add(outputs[l], net.layers[l].out);
  return states;
}

std::string morph(const Net& net, const Dataset& data) {
  const MorphStates states = morph_states(net, data.view());
  Json list = Json::array();
  for (const std::vector<double>& entries : states.list) {
    Json state = Json::array();
    for (std::size_t row = 0; row < data.rows(); ++row) {
      Json point = Json::array();
      for (std::size_t i = 0; i < states.width; ++i)
        point.push_back(shortened(entries[row * states.width + i]));
      state.push_back(std::move(point));
    }
    list.push_back(std::move(state));
  }
  return Json{{"schema", "normscope.morph/1"},
              {"width", states.width},
              {"labels", data.labels},
              {"states", std::move(list)}}
      .dump();
}

std::vector<double> morph_frame(const Net& net, const Dataset& data, double at) {
  const MorphStates states = morph_states(net, data.view());
  NORMSCOPE_ASSERT(at >= 0.0 && at <= static_cast<double>(states.list.size() - 1));
  const auto below = static_cast<std::size_t>(at);
  const std::vector<double>& from = states.list[below];
  const std::vector<double>& to = states.list[std::min(below + 1, states.list.size() - 1)];
  const double part = at - static_cast<double>(below);
  std::vector<double> frame(from.size());
  for (std::size_t i = 0; i < frame.size(); ++i) frame[i] = (1.0 - part) * from[i] + part * to[i];
  return frame;
}

}  // namespace normscope::lnnet
