#include <normscope/results/figures/vega.hpp>

#include <utility>

#include <nlohmann/json.hpp>

namespace normscope::vega {

using Json = nlohmann::ordered_json;

Json specification(Json parts) {
  parts["$schema"] = "https://vega.github.io/schema/vega-lite/v5.json";
  return parts;
}

Json values(Json rows) { return {{"values", std::move(rows)}}; }

Json quantity(const char* field, const char* title) {
  return {{"field", field}, {"type", "quantitative"}, {"title", title}};
}

Json logarithmic(const char* field, const char* title) {
  Json axis = quantity(field, title);
  axis["scale"] = {{"type", "log"}};
  return axis;
}

Json ordinal(const char* field, const char* title) {
  Json axis = quantity(field, title);
  // Vega-Lite derives whole ticks from the format; it ignores a tickMinStep.
  axis["axis"] = {{"format", "d"}};
  return axis;
}

namespace {

/// Wide enough for a column of text, or for two next to each other on a wide screen.
constexpr int width = 520;
constexpr int height = 320;

Json across(const Axes& axes) {
  Json axis = axes.logarithmic_x ? logarithmic("x", axes.x) : quantity("x", axes.x);
  // From the first row to the last; rounding to powers of ten would leave half the axis empty.
  if (axes.logarithmic_x) axis["scale"]["nice"] = false;
  return axis;
}

Json up(const char* field, const Axes& axes) {
  Json axis = axes.logarithmic_y ? logarithmic(field, axes.y) : quantity(field, axes.y);
  if (!axis.contains("scale")) axis["scale"] = Json::object();
  axis["scale"]["zero"] = false;
  return axis;
}

/// In the order of the rows, which arms define.
Json series() {
  // The legend is as opaque as the lines, not as their bands.
  return {{"field", "series"},
          {"type", "nominal"},
          {"title", nullptr},
          {"sort", nullptr},
          {"legend", {{"symbolOpacity", 1}}}};
}

bool have_bands(const Json& rows) {
  for (const Json& row : rows) {
    if (row.contains("low")) return true;
  }
  return false;
}

}  // namespace

Json curves(Json rows, const Axes& axes) {
  Json layers = Json::array();
  if (have_bands(rows)) {
    layers.push_back({{"mark", {{"type", "area"}, {"opacity", 0.18}}},
                      {"encoding", {{"y", up("low", axes)}, {"y2", {{"field", "high"}}}}}});
  }
  layers.push_back(
      {{"mark", {{"type", "line"}, {"strokeWidth", 1.8}}}, {"encoding", {{"y", up("y", axes)}}}});
  return specification({{"data", values(std::move(rows))},
                        {"width", width},
                        {"height", height},
                        {"encoding", {{"x", across(axes)}, {"color", series()}}},
                        {"layer", std::move(layers)}});
}

Json points(Json rows, const Axes& axes) {
  return specification({{"data", values(std::move(rows))},
                        {"width", width},
                        {"height", height},
                        {"mark", {{"type", "point"}, {"filled", true}, {"size", 30}, {"opacity", 0.6}}},
                        {"encoding", {{"x", across(axes)}, {"y", up("y", axes)}, {"color", series()}}}});
}

Json dots(Json rows, const Axes& axes) {
  const Json place = {{"field", "x"},
                      {"type", "ordinal"},
                      {"title", axes.x},
                      {"sort", nullptr},
                      {"axis", {{"labelAngle", 0}}}};
  Json layers = Json::array();
  if (have_bands(rows)) {
    layers.push_back({{"mark", {{"type", "rule"}, {"opacity", 0.6}}},
                      {"encoding", {{"y", up("low", axes)}, {"y2", {{"field", "high"}}}}}});
  }
  layers.push_back(
      {{"mark", {{"type", "point"}, {"filled", true}, {"size", 55}}}, {"encoding", {{"y", up("y", axes)}}}});
  return specification({{"data", values(std::move(rows))},
                        {"width", width},
                        {"height", height},
                        {"encoding",
                         {{"x", place},
                          {"xOffset", {{"field", "series"}, {"type", "nominal"}, {"sort", nullptr}}},
                          {"color", series()}}},
                        {"layer", std::move(layers)}});
}

Json heat_map(Json rows, const Axes& axes, const char* value, double most) {
  const auto side = [](const char* field, const char* title) {
    return Json{{"field", field}, {"type", "ordinal"}, {"title", title}, {"sort", nullptr}};
  };
  return specification({{"data", values(std::move(rows))},
                        {"mark", "rect"},
                        {"width", width},
                        {"height", width},
                        {"encoding",
                         {{"x", side("x", axes.x)},
                          {"y", side("y", axes.y)},
                          {"color",
                           {{"field", "value"},
                            {"type", "quantitative"},
                            {"title", value},
                            {"scale", {{"domain", {0.0, most}}, {"scheme", "viridis"}}}}}}}});
}

}  // namespace normscope::vega
