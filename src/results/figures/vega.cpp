#include <normscope/results/figures/vega.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/report.hpp>

#include "chart_parts.hpp"

namespace normscope::figures {
namespace {

/// Largest number of norms that an axis names.
constexpr std::size_t named_positions = 48;
/// Characters of a name from which its first parts, then its middle are left out.
constexpr std::size_t longest_axis_name = 24;
/// Largest over smallest value from which an axis is logarithmic.
constexpr double logarithmic_from = 8.0;

}  // namespace

bool is_ordered(const Json& row) { return !row.contains("ordered"); }

const char* depth_title(const Json& rows) {
  if (std::all_of(rows.begin(), rows.end(), is_ordered)) return "norm, in the order of the forward pass";
  return std::any_of(rows.begin(), rows.end(), is_ordered)
             ? "norm, in the order of the forward pass; unjoined: order not known"
             : "norm, by name: the order of the forward pass is not known";
}

std::string shown_token(const std::vector<std::string>& names, std::size_t token) {
  if (token >= names.size() || names[token].empty()) return fmt::format("#{}", token);
  std::string text;
  for (const char c : names[token]) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      text += c;
    } else {
      text += byte == '\n' ? "\\n" : fmt::format("\\x{:02X}", byte);
    }
  }
  return text;
}

std::vector<std::string> axis_names(const std::vector<std::string>& names) {
  std::size_t shared = names.size() < 2 ? 0 : names.front().size();
  for (const std::string& name : names) {
    const auto [mine, first] =
        std::mismatch(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(std::min(shared, name.size())),
                      names.front().begin());
    shared = static_cast<std::size_t>(mine - name.begin());
  }
  // Whole parts of the names only.
  const std::size_t dot = shared == 0 ? std::string::npos : names.front().rfind('.', shared - 1);
  const std::size_t left_out = dot == std::string::npos ? 0 : dot + 1;
  std::vector<std::string> result;
  for (const std::string& name : names) {
    std::string rest = name.substr(std::min(left_out, name.size()));
    for (std::size_t next; rest.size() > longest_axis_name && (next = rest.find('.')) != std::string::npos;) {
      rest.erase(0, next + 1);
    }
    result.push_back(results::shortened(rest, longest_axis_name));
  }
  return result;
}

std::string list_expression(const std::vector<std::string>& names) {
  return Json(names).dump(-1, ' ', true, Json::error_handler_t::replace);
}

Json named_axis(const std::vector<std::string>& names, std::size_t most) {
  const std::size_t step =
      std::max<std::size_t>(1, (names.size() + most - 1) / std::max<std::size_t>(1, most));
  Json positions = Json::array();
  for (std::size_t i = 0; i < names.size(); i += step) positions.push_back(i);
  return {{"values", std::move(positions)},
          {"labelExpr", list_expression(names) + "[datum.value]"},
          {"labelLimit", 150},
          {"labelOverlap", true}};
}

Json depth_axis(const Json& rows, const std::vector<std::string>& names) {
  Json axis = named_axis(axis_names(names), named_positions);
  axis["labelAngle"] = -90;
  return {{"field", "position"},
          {"type", "quantitative"},
          {"title", depth_title(rows)},
          {"axis", std::move(axis)},
          {"scale",
           {{"domain", {0, std::max<std::size_t>(names.size(), 2) - 1}}, {"nice", false}, {"padding", 12}}}};
}

std::vector<std::string> norm_names(const Report& report) {
  std::vector<std::string> names;
  for (const NormReport& norm : report.norms) names.push_back(norm.norm.name);
  return names;
}

Json depth_row(const Report& report, std::size_t index) {
  const models::Norm& norm = report.norms[index].norm;
  Json row = {{"position", index}, {"name", norm.name}, {"role", norm.role}};
  if (!norm.order_known) row["ordered"] = false;
  return row;
}

Json role_colour(const Json& rows) {
  // A role has the same colour in every figure of every model: its place in this list.
  std::vector<std::string> domain = {"attention input",  "mlp input",  "final",          "embedding",
                                     "attention output", "mlp output", "attention heads"};
  std::set<std::string> present;
  for (const Json& row : rows) present.insert(row["role"].get<std::string>());
  Json shown = Json::array();
  for (const std::string& role : domain) {
    if (present.erase(role) > 0) shown.push_back(role);
  }
  for (const std::string& role : present) {
    domain.push_back(role);
    shown.push_back(role);
  }
  Json colour = {{"field", "role"},
                 {"type", "nominal"},
                 {"title", nullptr},
                 {"scale", {{"domain", std::move(domain)}}},
                 {"legend", {{"values", std::move(shown)}}}};
  const bool one =
      std::all_of(rows.begin(), rows.end(), [&](const Json& row) { return row["role"] == rows[0]["role"]; });
  if (one && rows[0]["role"].get_ref<const std::string&>() == "unknown") colour["legend"] = nullptr;
  return colour;
}

std::pair<double, double> extent(const Json& rows, const char* field) {
  double low = INFINITY;
  double high = -INFINITY;
  for (const Json& row : rows) {
    low = std::min(low, row[field].get<double>());
    high = std::max(high, row[field].get<double>());
  }
  return {low, high};
}

std::string from_to(double low, double high, std::string (*text)(double)) {
  return text(low) == text(high) ? text(low) : fmt::format("from {} to {}", text(low), text(high));
}

Json ratio_axis(const Json& rows, const char* field, const char* title) {
  const auto [low, high] = extent(rows, field);
  if (high >= logarithmic_from * low) return logarithmic(field, title);
  Json axis = quantity(field, title);
  axis["scale"] = {{"zero", false}};
  return axis;
}

Json rank_axis(const char* title) {
  Json axis = logarithmic("rank", title);
  axis["scale"]["nice"] = false;
  return axis;
}

Json spectrum_rows(std::span<const double> lengths, double median, std::size_t points) {
  Json rows = Json::array();
  for (const std::size_t rank : analysis::thinned_ranks(lengths.size(), points)) {
    rows.push_back({{"rank", rank}, {"length", rounded(std::max(lengths[rank - 1], least_drawn * median))}});
  }
  return rows;
}

}  // namespace normscope::figures

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
