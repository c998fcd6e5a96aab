#include "chart_parts.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <fmt/core.h>

#include <normscope/audit/spectrum.hpp>

namespace normscope::figures {
namespace {

/// Depth up to which the axis marks every norm.
constexpr std::size_t named_positions = 40;
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

Json depth_axis(const Json& rows, std::size_t norms) {
  Json axis = {{"format", "d"}};
  const auto last =
      std::max<std::size_t>(rows.back()["position"].get<std::size_t>(), norms == 0 ? 0 : norms - 1);
  if (last < named_positions) {
    axis["values"] = Json::array();
    for (std::size_t i = 0; i <= last; ++i) axis["values"].push_back(i);
  }
  return {{"field", "position"},
          {"type", "quantitative"},
          {"title", depth_title(rows)},
          {"axis", axis},
          {"scale", {{"domain", {0, last}}, {"nice", false}, {"padding", 12}}}};
}

Json role_colour(const Json& rows) {
  Json colour = {{"field", "role"}, {"type", "nominal"}, {"title", nullptr}};
  const bool one =
      std::all_of(rows.begin(), rows.end(), [&](const Json& row) { return row["role"] == rows[0]["role"]; });
  if (one && rows[0]["role"] == "unknown") colour["legend"] = nullptr;
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
  for (const std::size_t rank : audit::thinned_ranks(lengths.size(), points)) {
    rows.push_back({{"rank", rank}, {"length", rounded(std::max(lengths[rank - 1], least_drawn * median))}});
  }
  return rows;
}

}  // namespace normscope::figures
