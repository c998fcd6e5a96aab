#include <normscope/lnnet/figures.hpp>

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include <normscope/core/assert.hpp>
#include <normscope/lnnet/evaluate.hpp>

namespace normscope::lnnet {
namespace {

using Json = nlohmann::ordered_json;

/// Digits that a screen can show.
constexpr double coordinate_scale = 1e4;
/// Space around the samples, in parts of their extent.
constexpr double margin = 0.08;

Json figure(Json spec) {
  spec["$schema"] = "https://vega.github.io/schema/vega-lite/v5.json";
  return spec;
}

Json values(Json rows) { return {{"values", std::move(rows)}}; }

Json quantity(const char* field, const char* title) {
  return {{"field", field}, {"type", "quantitative"}, {"title", title}};
}

double shortened(double value) { return std::round(value * coordinate_scale) / coordinate_scale; }

Json panel(const Json& rows, Json rules, Json y) {
  return {{"width", 560},
          {"height", 180},
          {"layer",
           {{{"data", values(rows)},
             {"mark", {{"type", "line"}, {"strokeWidth", 1.2}}},
             {"encoding", {{"x", quantity("step", "step")}, {"y", std::move(y)}}}},
            {{"data", values(std::move(rules))},
             {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"color", "firebrick"}}},
             {"encoding",
              {{"x", quantity("step", "step")},
               {"tooltip", {quantity("step", "transition"), quantity("gain", "gain of accuracy")}}}}}}}};
}

std::pair<double, double> extent(const Dataset& data, std::size_t axis) {
  double low = data.x[axis];
  double high = low;
  for (std::size_t row = 0; row < data.rows(); ++row) {
    low = std::min(low, data.view().row(row)[axis]);
    high = std::max(high, data.view().row(row)[axis]);
  }
  const double space = margin * std::max(high - low, 1e-300);
  return {low - space, high + space};
}

}  // namespace

std::string curves_figure(std::span<const double> loss, std::span<const double> accuracy,
                          std::size_t record_every, std::span<const Transition> marks) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < loss.size(); ++i) {
    rows.push_back({{"step", i * record_every}, {"loss", loss[i]}, {"accuracy", accuracy[i]}});
  }
  Json rules = Json::array();
  for (const Transition& mark : marks) rules.push_back({{"step", mark.step}, {"gain", shortened(mark.gain)}});
  Json losses = quantity("loss", "loss");
  // A loss of exactly zero has no place on a logarithmic axis.
  if (std::all_of(loss.begin(), loss.end(), [](double value) { return value > 0.0; })) {
    losses["scale"] = {{"type", "log"}};
  }
  Json accuracies = quantity("accuracy", "accuracy");
  accuracies["scale"] = {{"domain", {0, 1}}};
  return figure({{"description", "Loss and accuracy over training; dashed where the accuracy jumps."},
                 {"vconcat", {panel(rows, rules, losses), panel(rows, rules, accuracies)}}})
      .dump();
}

std::string boundary_figure(const Net& net, const Dataset& data, std::size_t cells) {
  NORMSCOPE_ASSERT(data.width == 2 && cells >= 1);
  const auto [left, right] = extent(data, 0);
  const auto [bottom, top] = extent(data, 1);
  const double dx = (right - left) / static_cast<double>(cells);
  const double dy = (top - bottom) / static_cast<double>(cells);
  std::vector<double> grid;
  for (std::size_t row = 0; row < cells; ++row) {
    for (std::size_t column = 0; column < cells; ++column) {
      grid.push_back(left + (static_cast<double>(column) + 0.5) * dx);
      grid.push_back(bottom + (static_cast<double>(row) + 0.5) * dy);
    }
  }
  const std::vector<std::int64_t> classes = labels(net, {grid.data(), cells * cells, 2});
  Json areas = Json::array();
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const double x = grid[2 * i] - 0.5 * dx;
    const double y = grid[2 * i + 1] - 0.5 * dy;
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
  return figure({{"description", "Samples over the classes that the net gives the plane."},
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

std::string morph(const Net& net, const Dataset& data) {
  std::size_t width = data.width;
  for (const Layer& layer : net.layers) width = std::max(width, layer.out);
  Json states = Json::array();
  const auto add = [&](const std::vector<double>& entries, std::size_t features) {
    Json state = Json::array();
    for (std::size_t row = 0; row < data.rows(); ++row) {
      Json point = Json::array();
      for (std::size_t i = 0; i < width; ++i) {
        point.push_back(i < features ? shortened(entries[row * features + i]) : 0.0);
      }
      state.push_back(std::move(point));
    }
    states.push_back(std::move(state));
  };
  add(data.x, data.width);
  const std::vector<std::vector<double>> outputs = trace(net, data.view());
  for (std::size_t l = 0; l < outputs.size(); ++l) add(outputs[l], net.layers[l].out);
  return Json{{"width", width}, {"labels", data.labels}, {"states", std::move(states)}}.dump();
}

}  // namespace normscope::lnnet
