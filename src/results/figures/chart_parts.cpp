#include "chart_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/core.h>

#include <normscope/analysis/spectrum.hpp>

namespace normscope::figures {
namespace {

/// Largest number of norms that an axis names.
constexpr std::size_t named_positions = 48;
/// Characters of a name from which its first parts are left out.
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
    result.push_back(std::move(rest));
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
  Json colour = {{"field", "role"}, {"type", "nominal"}, {"title", nullptr}};
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

Json spectrum_rows(std::span<const double> lengths, double median, std::size_t points) {
  Json rows = Json::array();
  for (const std::size_t rank : analysis::thinned_ranks(lengths.size(), points)) {
    rows.push_back({{"rank", rank}, {"length", rounded(std::max(lengths[rank - 1], least_drawn * median))}});
  }
  return rows;
}

}  // namespace normscope::figures
