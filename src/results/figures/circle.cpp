#include <normscope/results/figures.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <numbers>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/nets/circle.hpp>
#include <normscope/results/figures/vega.hpp>

namespace normscope::figures {

using Json = nlohmann::ordered_json;

Json attention_bars(std::span<const double> weights, const selectability::Selection& selection) {
  NORMSCOPE_ASSERT(weights.size() == selection.keys.size());
  Json rows = Json::array();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    rows.push_back(
        {{"key", i}, {"weight", weights[i]}, {"answer", selectability::to_string(selection.keys[i].answer)}});
  }
  const Json colour = {{"field", "answer"},
                       {"type", "nominal"},
                       {"legend", nullptr},
                       {"scale", {{"domain", {"selectable", "unselectable", "undecided"}}}}};
  const Json x = {{"field", "key"},
                  {"type", "ordinal"},
                  {"title", "key"},
                  {"axis", {{"labelAngle", 0}, {"labelOverlap", true}, {"ticks", false}}}};
  const Json y = {{"field", "weight"},
                  {"type", "quantitative"},
                  {"title", "attention"},
                  {"scale", {{"domain", {0, 1}}}},
                  {"axis", {{"format", ".0%"}, {"tickCount", 5}}}};
  const Json tips = {{{"field", "key"}}, {{"field", "weight"}, {"format", ".3f"}}, {{"field", "answer"}}};
  return vega::specification({{"description", "Attention weight of each key."},
                              {"width", "container"},
                              {"height", 150},
                              {"data", {{"name", "weights"}, {"values", std::move(rows)}}},
                              {"mark", "bar"},
                              {"encoding", {{"x", x}, {"y", y}, {"color", colour}, {"tooltip", tips}}}});
}

namespace {

using Json = nlohmann::ordered_json;
using nets::Fold;
using nets::no_row;
using vega::ordinal;
using vega::values;

/// Number of points along the layers that a screen can show.
constexpr std::size_t most_points = 400;

/// Every layer, or groups of neighbouring layers such that at most `most_points` remain.
Json points(std::span<const Fold> folds) {
  const std::size_t together = std::max<std::size_t>(1, (folds.size() + most_points - 1) / most_points);
  Json rows = Json::array();
  for (std::size_t begin = 0; begin < folds.size(); begin += together) {
    const std::span<const Fold> part = folds.subspan(begin, std::min(together, folds.size() - begin));
    std::vector<double> gaps;
    for (const Fold& fold : part) {
      // There is no gap if no other class lies on the opposite side, and in a layer without a pair.
      if (std::isfinite(fold.gap) && fold.gap > 0.0) gaps.push_back(fold.gap);
    }
    Json row = {{"layer", begin + part.size()}, {"runs", part.back().runs}};
    if (!gaps.empty()) {
      std::sort(gaps.begin(), gaps.end());
      row["least"] = gaps.front();
      row["median"] = gaps[gaps.size() / 2];
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json gap_line(const char* field, double width) {
  Json y = vega::logarithmic(field, "gap");
  y["axis"] = {{"format", ".0e"}, {"tickCount", 8}, {"grid", false}};
  return {{"transform", {{{"filter", std::string("isValid(datum.") + field + ")"}}}},
          {"mark", {{"type", "line"}, {"strokeWidth", width}}},
          {"encoding",
           {{"x", ordinal("layer", "layer")},
            {"y", std::move(y)},
            {"color", {{"datum", field}, {"type", "nominal"}, {"title", nullptr}}}}}};
}

}  // namespace

Json folds(std::span<const Fold> folds) {
  Json breaks = Json::array();
  for (std::size_t l = 0; l < folds.size(); ++l) {
    if (folds[l].first == no_row) breaks.push_back({{"layer", l + 1}});
  }
  // Without breaks, rules are left out, since an axis without data has no extent.
  const bool broken = !breaks.empty();
  const Json rules = {{"data", values(std::move(breaks))},
                      {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"color", "firebrick"}}},
                      {"encoding", {{"x", ordinal("layer", "layer")}}}};
  const Json runs = {{"mark", {{"type", "line"}, {"strokeWidth", 1.5}}},
                     {"encoding", {{"x", ordinal("layer", "layer")}, {"y", ordinal("runs", "runs left")}}}};
  const auto with_rules = [&](Json layers) {
    if (broken) layers.push_back(rules);
    return layers;
  };
  Json shown = points(folds);
  Json panels = Json::array();
  // Paper mode does not compute gaps.
  if (std::any_of(shown.begin(), shown.end(), [](const Json& row) { return row.contains("least"); })) {
    panels.push_back({{"width", 560},
                      {"height", 180},
                      {"layer", with_rules({gap_line("median", 1.5), gap_line("least", 0.7)})}});
  }
  panels.push_back({{"width", 560}, {"height", 180}, {"layer", with_rules(Json::array({runs}))}});
  return vega::specification({{"description",
                               "How near two classes came in each fold, in units of half the pair's "
                               "distance, and the runs left; "
                               "dashed where a layer folds nothing."},
                              {"data", values(std::move(shown))},
                              {"vconcat", std::move(panels)}});
}

namespace {

using Json = nlohmann::ordered_json;
using selectability::RandomCell;
using selectability::RandomTable;

/// Digits of a share that can be distinguished by colour.
constexpr double share_digits = 1e4;

Json axis(const char* field, const char* title, const Json& extra) {
  Json result = {{"field", field}, {"type", "ordinal"}, {"title", title}};
  result.update(extra);
  return result;
}

Json whole_numbers(std::size_t least, std::size_t most) {
  Json result = Json::array();
  for (std::size_t value = least; value <= most; ++value) result.push_back(value);
  return result;
}

Json table_specification(const std::vector<RandomCell>& cells, double RandomCell::*share,
                         std::string_view title) {
  Json values = Json::array();
  for (const RandomCell& cell : cells) {
    values.push_back({{"width", cell.width},
                      {"count", cell.count},
                      {"share", std::round(cell.*share * share_digits) / share_digits}});
  }
  const Json tips = {{{"field", "width"}, {"title", "width"}},
                     {{"field", "count"}, {"title", "keys"}},
                     {{"field", "share"}, {"title", "share"}, {"format", ".3f"}}};
  Json colour = vega::quantity("share", "share");
  colour["scale"] = {{"domain", {0, 1}}, {"scheme", "blues"}};
  // Every fifth count gets a label; sixty labels do not fit.
  const Json every_fifth = {
      {"axis", {{"labelExpr", "datum.value % 5 == 0 ? datum.label : ''"}, {"ticks", false}}}};
  const Json encoding = {{"x", axis("width", "width of the keys",
                                    {{"axis", {{"labelAngle", 0}, {"orient", "top"}, {"ticks", false}}}})},
                         {"y", axis("count", "number of keys", every_fifth)},
                         {"color", colour},
                         {"tooltip", tips}};
  return vega::specification({{"title", {{"text", std::string(title)}, {"anchor", "start"}}},
                              {"width", 340},
                              {"height", 520},
                              {"data", vega::values(std::move(values))},
                              {"mark", {{"type", "rect"}}},
                              {"encoding", encoding}});
}

}  // namespace

Json random_table(const std::vector<RandomCell>& cells, double RandomCell::*share, std::string_view title) {
  return table_specification(cells, share, title);
}

Json random_table(const RandomTable& table, const std::vector<RandomCell>& cells, double RandomCell::*share,
                  std::string_view title) {
  Json result = table_specification(cells, share, title);
  result["data"]["name"] = "cells";
  result["width"] = 300;
  Json& encoding = result["encoding"];
  // The embedding page sets the colours.
  encoding["color"]["scale"].erase("scheme");
  encoding["x"]["scale"] = {{"domain", whole_numbers(table.least_width, table.most_width)}};
  encoding["y"]["scale"] = {{"domain", whole_numbers(table.least_count, table.most_count)}};
  return result;
}

namespace {

using Json = nlohmann::ordered_json;

Json on_log_axis(const char* field, const char* title, int base) {
  Json result = vega::quantity(field, title);
  result["scale"] = {{"type", "log"}, {"base", base}};
  return result;
}

}  // namespace

Json group_curvature(std::span<const norm::GroupCurvature> results) {
  Json rows = Json::array();
  const auto add = [&](std::size_t groups, const char* what, double ratio) {
    if (std::isfinite(ratio) && ratio > 0.0) {
      rows.push_back({{"groups", groups}, {"what", what}, {"ratio", ratio}});
    }
  };
  for (const norm::GroupCurvature& result : results) {
    add(result.groups, "mean of the rows", result.ratio);
    add(result.groups, "least of the rows", result.least);
    if (result.bound) add(result.groups, "proved for every row", *result.bound);
  }
  Json x = on_log_axis("groups", "groups", 2);
  x["axis"] = {{"format", "d"}, {"tickCount", 8}};
  Json y = on_log_axis("ratio", "curvature over that of one group", 10);
  y["axis"] = {{"format", "~s"}, {"tickCount", 6}};
  const Json names = {"mean of the rows", "least of the rows", "proved for every row"};
  const Json encoding = {
      {"x", std::move(x)},
      {"y", std::move(y)},
      {"color", {{"field", "what"}, {"type", "nominal"}, {"title", nullptr}, {"scale", {{"domain", names}}}}},
      {"strokeDash",
       {{"field", "what"},
        {"type", "nominal"},
        {"title", nullptr},
        {"scale", {{"domain", names}, {"range", {{1, 0}, {1, 0}, {5, 3}}}}}}},
      {"tooltip",
       {{{"field", "what"}, {"title", " "}},
        {{"field", "groups"}},
        {{"field", "ratio"}, {"format", ".4~g"}}}}};
  return vega::specification({{"description", "How a norm's curvature grows with the number of its groups."},
                              {"width", 560},
                              {"height", 260},
                              {"data", vega::values(std::move(rows))},
                              {"mark", {{"type", "line"}, {"point", true}}},
                              {"encoding", encoding}});
}

namespace {

using Json = nlohmann::ordered_json;
using nets::folded;
using nets::stretched;
using nets::surface;
using vega::quantity;
using vega::values;

using std::numbers::pi;
/// Number of points of a circle and of a curve, and of cells along the longer side of the surface.
constexpr int circle_points = 72;
constexpr int curve_points = 200;
constexpr int surface_cells = 64;
/// Where a move would give 0/0.
constexpr double curve_eps = 1e-12;

using Move = std::function<Json(double t, double x, double y)>;

Json coordinate(const char* field, const char* title, double least, double most) {
  Json result = quantity(field, title);
  result["scale"] = {{"domain", {least, most}}};
  result["axis"] = {{"grid", false}};
  return result;
}

/// Above, the circle after each move; below, its first coordinate as a function of the original one.
Json circles_over_curves(const char* title, const char* subtitle, std::initializer_list<double> moves,
                         double (*curve)(double t, double x, double eps), const Move& point) {
  Json points = Json::array();
  Json lines = Json::array();
  for (const double t : moves) {
    for (int i = 0; i < circle_points; ++i) {
      const double angle = 2.0 * pi * (i + 0.5) / circle_points;
      Json at = point(t, std::cos(angle), std::sin(angle));
      at["t"] = t;
      at["from"] = rounded_to_four_decimals(std::cos(angle));
      points.push_back(std::move(at));
    }
    for (int i = 0; i <= curve_points; ++i) {
      const double x = 2.0 * i / curve_points - 1.0;
      lines.push_back({{"t", t},
                       {"x", rounded_to_four_decimals(x)},
                       {"out", rounded_to_four_decimals(curve(t, x, curve_eps))}});
    }
  }
  Json x = coordinate("x", "x", -1.1, 1.1);
  Json y = coordinate("y", "y", -1.1, 1.1);
  Json before = quantity("from", "x before");
  before["scale"] = {{"domainMid", 0}};
  const Json panel = {{"width", 105},
                      {"height", 105},
                      {"mark", {{"type", "point"}, {"filled", true}, {"size", 14}, {"opacity", 1}}},
                      {"encoding", {{"x", std::move(x)}, {"y", std::move(y)}, {"color", std::move(before)}}}};
  return vega::specification(
      {{"title", {{"text", title}, {"subtitle", subtitle}}},
       {"description", subtitle},
       {"resolve", {{"scale", {{"color", "independent"}}}}},
       {"vconcat",
        {{{"data", values(std::move(points))},
          {"facet", {{"column", {{"field", "t"}, {"type", "ordinal"}, {"title", "t"}}}}},
          {"spec", panel}},
         {{"width", 420},
          {"height", 260},
          {"data", values(std::move(lines))},
          {"mark", "line"},
          {"encoding",
           {{"x", coordinate("x", "x before", -1, 1)},
            {"y", coordinate("out", "x after", -1, 1)},
            {"color", {{"field", "t"}, {"type", "nominal"}, {"title", "t"}}}}}}}}});
}

void add_slice(Json& rows, const char* name, const std::function<Json(double part)>& at) {
  for (int i = 0; i <= curve_points; ++i) {
    Json row = at(static_cast<double>(i) / curve_points);
    row["slice"] = name;
    row["order"] = i;
    rows.push_back(std::move(row));
  }
}

Json place(double x, double y) {
  return {{"x", rounded_to_four_decimals(x)}, {"y", rounded_to_four_decimals(y)}};
}

}  // namespace

Json stretched_circle() {
  return circles_over_curves(
      "Stretch: u(t x, y) on the circle",
      "Above the circle's points after it, below the first coordinate before and after",
      {0.2, 0.5, 1.0, 2.0, 5.0}, stretched, [](double t, double x, double y) {
        const double length = std::hypot(t * x, y);
        return place(t * x / length, y / length);
      });
}

Json folded_circle() {
  return circles_over_curves(
      "Fold: u(x + t, y) on the circle",
      "Above the circle's points after it, below the first coordinate before and after",
      {0.0, 0.5, 0.9, 1.1, 2.0}, folded, [](double t, double x, double y) {
        const double length = std::hypot(x + t, y);
        return place((x + t) / length, y / length);
      });
}

Json circle_surface() {
  constexpr double right = 3.2;
  constexpr double top = 1.6;
  constexpr double cell = 2.0 * right / surface_cells;
  Json cells = Json::array();
  for (int row = 0; row < surface_cells / 2; ++row) {
    const double y = -top + row * cell;
    for (int column = 0; column < surface_cells; ++column) {
      const double x = -right + column * cell;
      cells.push_back({{"x", rounded_to_four_decimals(x)},
                       {"x2", rounded_to_four_decimals(x + cell)},
                       {"y", rounded_to_four_decimals(y)},
                       {"y2", rounded_to_four_decimals(y + cell)},
                       {"z", rounded_to_four_decimals(surface(x + 0.5 * cell, y + 0.5 * cell))}});
    }
  }
  Json slices = Json::array();
  add_slice(slices, "y = 0.5", [](double part) { return place(right * (2.0 * part - 1.0), 0.5); });
  add_slice(slices, "stretch, t = 3",
            [](double part) { return place(3.0 * std::cos(2.0 * pi * part), std::sin(2.0 * pi * part)); });
  add_slice(slices, "shift, t = 2",
            [](double part) { return place(2.0 + std::cos(2.0 * pi * part), std::sin(2.0 * pi * part)); });
  const Json x = coordinate("x", "x", -right, right);
  const Json y = coordinate("y", "y", -top, top);
  Json height = quantity("z", "height");
  height["scale"] = {{"domainMid", 0}};
  return vega::specification(
      {{"title",
        {{"text", "The activation surface x/sqrt(x² + y²)"},
         {"subtitle", "Stretch, fold and sigmoid are what it is along the lines"}}},
       {"description", "The first coordinate of the normalized plane, with the curves that slice it."},
       {"width", 560},
       {"height", 280},
       {"resolve", {{"scale", {{"color", "independent"}}}}},
       {"layer",
        {{{"data", values(std::move(cells))},
          {"mark", "rect"},
          {"encoding",
           {{"x", x}, {"x2", {{"field", "x2"}}}, {"y", y}, {"y2", {{"field", "y2"}}}, {"color", height}}}},
         {{"data", values(std::move(slices))},
          {"mark", {{"type", "line"}, {"strokeWidth", 2}, {"color", "limegreen"}}},
          {"encoding",
           {{"x", x},
            {"y", y},
            {"order", {{"field", "order"}}},
            {"strokeDash", {{"field", "slice"}, {"type", "nominal"}, {"title", "slice"}}}}}}}}});
}

}  // namespace normscope::figures
