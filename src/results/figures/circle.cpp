#include <normscope/results/figures/circle.hpp>

#include <cmath>
#include <functional>
#include <initializer_list>
#include <numbers>

#include <nlohmann/json.hpp>

#include <normscope/core/rounded.hpp>
#include <normscope/nets/circle.hpp>
#include <normscope/results/figures/vega.hpp>

namespace normscope::figures {
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
