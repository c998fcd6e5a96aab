#include <normscope/lnnet/figures.hpp>

#include <algorithm>

#include <normscope/core/assert.hpp>
#include <normscope/lnnet/evaluate.hpp>

#include "figure_parts.hpp"

namespace normscope::lnnet {
namespace {

using detail::figure;
using detail::Json;
using detail::quantity;
using detail::shortened;
using detail::values;

/// Space around the samples, in parts of their extent.
constexpr double margin = 0.08;

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

/// The samples and every layer's output, all as wide as the widest.
struct States {
  States(const Net& net, const Dataset& data) : width(data.width) {
    for (const Layer& layer : net.layers) width = std::max(width, layer.out);
    add(data.x, data.rows(), data.width);
    const std::vector<std::vector<double>> outputs = trace(net, data.view());
    for (std::size_t l = 0; l < outputs.size(); ++l) add(outputs[l], data.rows(), net.layers[l].out);
  }

  void add(const std::vector<double>& entries, std::size_t rows, std::size_t features) {
    std::vector<double>& state = list.emplace_back(rows * width);
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < features; ++i) state[row * width + i] = entries[row * features + i];
    }
  }

  std::size_t width;
  std::vector<std::vector<double>> list{};
};

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
  return figure({{"title", "Loss and accuracy over training"},
                 {"description", "Loss and accuracy over training; dashed where the accuracy jumps."},
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
  return figure({{"title", "Samples over the classes that the net gives the plane"},
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

std::string morph(const Net& net, const Dataset& data) {
  const States states(net, data);
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
  const States states(net, data);
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
