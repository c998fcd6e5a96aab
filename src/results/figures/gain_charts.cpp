#include "gain_charts.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include <fmt/core.h>

namespace normscope::figures {
namespace {

using analysis::gain_bins_per_octave;

/// Norms that a figure with a row for each shows, at most.
constexpr std::size_t most_rows = 512;
/// Pixels of all rows together, and of one.
constexpr std::size_t rows_height = 760;
constexpr std::size_t tallest_row = 26;
constexpr std::size_t lowest_row = 3;
/// Pixels that a name needs.
constexpr std::size_t name_height = 10;
/// How many rows a ridge is high where its norm has most gains.
constexpr double ridge_rows = 1.7;
/// Bins further from the typical one are drawn at this distance: 16 octaves.
constexpr int most_bins = 64;
/// Ratios beyond this power of two have the colour of it.
constexpr double most_doublings = 6.0;

std::size_t row_height(std::size_t rows) {
  return std::clamp(rows_height / std::max<std::size_t>(1, rows), lowest_row, tallest_row);
}

/// Names at the rows of a figure, as many as there is room for.
Json row_axis(const std::vector<std::string>& names) {
  Json axis = named_axis(names, row_height(names.size()) * names.size() / name_height);
  axis["grid"] = false;
  return axis;
}

bool has_gain(const NormReport& norm) {
  return norm.gain && norm.gain->not_finite == 0 && !norm.gain_sizes.empty();
}

/// "attention", "MLP" or "other".
std::string panel_of(const models::Norm& norm) {
  if (norm.role.rfind("attention", 0) == 0) return "Norms of attention";
  if (norm.role.rfind("mlp", 0) == 0) return "Norms of the MLPs";
  return "Other norms";
}

struct Panel {
  std::string title;
  std::vector<std::size_t> norms;
};

/// Norms by what they belong to; one panel where a second would say nothing.
std::vector<Panel> panels_of(const Report& report) {
  std::vector<Panel> panels;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    if (!has_gain(report.norms[i])) continue;
    const std::string title = panel_of(report.norms[i].norm);
    auto panel =
        std::find_if(panels.begin(), panels.end(), [&](const Panel& one) { return one.title == title; });
    if (panel == panels.end()) {
      panels.push_back({title, {}});
      panel = std::prev(panels.end());
    }
    if (panel->norms.size() < most_rows) panel->norms.push_back(i);
  }
  std::stable_partition(panels.begin(), panels.end(),
                        [](const Panel& one) { return one.title != "Other norms"; });
  return panels;
}

/// What tells the norms of a panel apart: their layers, or their names.
std::pair<std::vector<std::string>, const char*> labels_of(const Report& report, const Panel& panel) {
  std::vector<std::string> layers;
  std::set<std::string> different;
  std::vector<std::string> names;
  for (const std::size_t i : panel.norms) {
    const models::Norm& norm = report.norms[i].norm;
    names.push_back(norm.name);
    if (!norm.layer) continue;
    layers.push_back((norm.stack.empty() ? "" : norm.stack + " ") + fmt::format("{}", *norm.layer));
    different.insert(layers.back());
  }
  if (different.size() == panel.norms.size() && different.size() > 1) return {layers, "layer"};
  return {axis_names(names), ""};
}

/// Within the range that a logarithmic axis can show.
double bin_middle(int bin) {
  return rounded(std::clamp(std::exp2((bin + 0.5) / gain_bins_per_octave), 1e-300, 1e300));
}

/// The outline of a norm's histogram above its row: from an empty bin to an empty bin.
void add_ridge(const NormReport& norm, std::size_t row, int typical, Json& table) {
  std::map<int, std::size_t> bins;
  std::size_t most = 0;
  for (const auto& [bin, count] : norm.gain_sizes) {
    std::size_t& all = bins[std::clamp(bin, typical - most_bins, typical + most_bins)];
    all += count;
    most = std::max(most, all);
  }
  const auto point = [&](int bin, std::size_t count) {
    const double height = ridge_rows * static_cast<double>(count) / static_cast<double>(most);
    table.push_back({{"row", row},
                     {"top", rounded(static_cast<double>(row) - height)},
                     {"gain", bin_middle(bin)},
                     {"count", count},
                     {"name", norm.norm.name}});
  };
  std::optional<int> before;
  for (const auto& [bin, count] : bins) {
    if (!before || bin - *before > 1) {
      if (before) point(*before + 1, 0);
      if (!before || bin - *before > 2) point(bin - 1, 0);
    }
    point(bin, count);
    before = bin;
  }
  point(*before + 1, 0);
}

/// Gains within the axis that are too few for a ridge to show them.
void add_dots(const NormReport& norm, std::size_t row, std::pair<double, double> range, Json& table) {
  const auto dot = [&](const analysis::Outlier& one) {
    if (std::abs(one.gain) < range.first || std::abs(one.gain) > range.second) return;
    table.push_back({{"row", row},
                     {"gain", rounded(std::abs(one.gain))},
                     {"coordinate", one.coordinate},
                     {"ratio", rounded(one.ratio_to_median)},
                     {"name", norm.norm.name}});
  };
  for (std::size_t k = 0; k < std::min(norm.outliers.size(), analysis::listed_outliers); ++k)
    dot(norm.outliers[k]);
  for (std::size_t k = 0; k < std::min(norm.switched_off.size(), analysis::listed_outliers); ++k) {
    dot(norm.switched_off[k]);
  }
}

std::string ridge_answer(const Report& report, const Panel& panel) {
  double low = INFINITY;
  double high = 0.0;
  std::size_t outliers = 0;
  for (const std::size_t i : panel.norms) {
    const double median = report.norms[i].gain->median_abs;
    low = std::min(low, median);
    high = std::max(high, median);
    outliers += report.norms[i].outliers.size();
  }
  return fmt::format("Median gains are {}; {} at least {:g} times {} norm's median.", from_to(low, high),
                     outliers == 0   ? "no gain is"
                     : outliers == 1 ? "one gain is"
                                     : fmt::format("{} gains are", outliers),
                     analysis::outlier_ratio, panel.norms.size() == 1 ? "the" : "their");
}

Json ridge_spec(const Report& report, const Panel& panel, const GainAxis& axis) {
  Json ridges = Json::array();
  Json dots = Json::array();
  for (std::size_t row = 0; row < panel.norms.size(); ++row) {
    const NormReport& norm = report.norms[panel.norms[row]];
    add_ridge(norm, row, axis.typical, ridges);
    add_dots(norm, row, {axis.low, axis.high}, dots);
  }
  const auto [labels, title] = labels_of(report, panel);
  const double last = static_cast<double>(panel.norms.size() - 1);
  const Json x = {{"field", "gain"},
                  {"type", "quantitative"},
                  {"title", "size of the gain"},
                  {"axis", {{"format", ".3~g"}, {"labelOverlap", true}, {"tickCount", 6}}},
                  {"scale", {{"type", "log"}, {"domain", {axis.low, axis.high}}, {"nice", false}}}};
  Json y = {{"field", "top"},
            {"type", "quantitative"},
            {"title", *title == '\0' ? Json(nullptr) : Json(title)},
            {"axis", row_axis(labels)},
            {"scale",
             {{"domain", {-ridge_rows, last + 0.4}}, {"reverse", true}, {"nice", false}, {"zero", false}}}};
  Json at_row = y;
  at_row["field"] = "row";
  Json layers = {{{"data", values(std::move(ridges))},
                  {"mark",
                   {{"type", "area"},
                    {"line", {{"strokeWidth", 1.2}}},
                    {"fillOpacity", 0.3},
                    {"interpolate", "monotone"}}},
                  {"encoding",
                   {{"x", x},
                    {"y", y},
                    {"y2", {{"field", "row"}}},
                    {"detail", {{"field", "row"}, {"type", "nominal"}}},
                    {"tooltip", tooltip({{"gain", "gain near"}, {"count", "gains"}})}}}}};
  if (!dots.empty()) {
    layers.push_back(
        {{"data", values(std::move(dots))},
         {"mark", {{"type", "point"}, {"filled", true}, {"size", 16}, {"opacity", 0.9}}},
         {"encoding",
          {{"x", x},
           {"y", at_row},
           {"color", {{"value", "#c2571a"}}},
           {"tooltip",
            tooltip({{"gain", "gain"}, {"coordinate", "coordinate"}, {"ratio", "times the median"}})}}}});
  }
  return {{"height", row_height(panel.norms.size()) * (panel.norms.size() + 2)},
          {"layer", std::move(layers)}};
}

Json ridge_chart(const Report& report, const Panel& panel, const std::string& id, const GainAxis& axis,
                 bool explains) {
  return chart(id.c_str(), "How do the gains spread, norm by norm?",
               fmt::format("{}{}", ridge_answer(report, panel),
                           !explains ? ""
                                     : " Each curve counts the gains of one norm by size, as high as its "
                                       "fullest bin; dots are gains that stand out or are switched off."),
               fmt::format("Distribution of the gains of {} on a logarithmic axis, one curve above the other "
                           "in the order of the report.",
                           counted(panel.norms.size(), "norm")),
               ridge_spec(report, panel, axis));
}

/// The colour of a gain over the median.
Json ratio_colour() {
  return {{"field", "doublings"},
          {"type", "quantitative"},
          {"title", "gain over median"},
          {"legend",
           {{"gradientLength", 160},
            {"values", {-6, -3, 0, 3, 6}},
            {"labelExpr", "format(pow(2, datum.value), '.2~g')"}}},
          {"scale",
           {{"domain", {-most_doublings, most_doublings}},
            {"domainMid", 0},
            {"clamp", true},
            {"interpolate", "rgb"}}}};
}

double doublings(double ratio) {
  return rounded(std::clamp(std::log2(ratio), -most_doublings, most_doublings));
}

struct GainMap {
  Json spec;
  std::size_t norms = 0;
  std::size_t block = 1;  ///< coordinates of a square
};

GainMap gain_map(const Report& report) {
  GainMap map;
  Json table = Json::array();
  std::vector<std::string> names;
  std::size_t width = 0;
  for (const NormReport& norm : report.norms) {
    if (!has_gain(norm) || names.size() == most_rows) continue;
    for (const analysis::GainBlock& block : norm.gain_blocks) {
      map.block = std::max(map.block, block.end - block.begin);
      width = std::max(width, block.end);
      table.push_back({{"row", names.size()},
                       {"begin", block.begin},
                       {"end", block.end},
                       {"coordinate", block.coordinate},
                       {"ratio", rounded(block.ratio)},
                       {"doublings", doublings(block.ratio)}});
    }
    names.push_back(norm.norm.name);
  }
  map.norms = names.size();
  if (names.empty()) return map;
  Json tips = tooltip({{"coordinate", "coordinate"}, {"ratio", "times the median"}});
  map.spec = {
      {"data", values(std::move(table))},
      {"height", row_height(names.size()) * names.size()},
      {"transform", {{{"calculate", list_expression(names) + "[datum.row]"}, {"as", "name"}}}},
      {"mark", {{"type", "rect"}}},
      {"encoding",
       {{"x",
         {{"field", "begin"},
          {"type", "quantitative"},
          {"title", "coordinate"},
          {"axis", {{"format", "d"}}},
          {"scale", {{"domain", {0, width}}, {"nice", false}}}}},
        {"x2", {{"field", "end"}}},
        {"y",
         {{"field", "row"}, {"type", "ordinal"}, {"title", nullptr}, {"axis", row_axis(axis_names(names))}}},
        {"color", ratio_colour()},
        {"tooltip", std::move(tips)}}}};
  return map;
}

Json map_chart(GainMap map, const char* id, const char* question) {
  const std::string what =
      map.block == 1 ? "Each square is one gain"
                     : fmt::format("Each square is the most unusual gain of {} coordinates", map.block);
  return chart(
      id, question,
      fmt::format("{}: blue above its norm's median, orange below. A line from top to bottom is one "
                  "coordinate that every norm treats alike.",
                  what),
      fmt::format("Gain over the median by coordinate and norm, for {}.", counted(map.norms, "norm")),
      std::move(map.spec));
}

void features(const Report& report, Json& charts) {
  Json table = Json::array();
  Json order = Json::array();
  for (const analysis::UnusualFeature& feature : report.features) {
    const std::string label = feature.stack.empty() ? fmt::format("{}", feature.coordinate)
                                                    : fmt::format("{} {}", feature.stack, feature.coordinate);
    order.push_back(label);
    for (std::size_t k = 0; k < feature.norms.size() && feature.norms[k] < most_rows; ++k) {
      const double ratio = feature.ratios[k];
      Json row = depth_row(report, feature.norms[k]);
      row.update({{"feature", label}, {"ratio", rounded(ratio)}, {"doublings", doublings(ratio)}});
      table.push_back(std::move(row));
    }
  }
  if (table.empty()) return;
  std::vector<std::string> names = axis_names(norm_names(report));
  std::set<std::size_t> rows;
  for (const Json& row : table) rows.insert(row["position"].get<std::size_t>());
  Json axis = named_axis(names, names.size());
  axis.erase("values");  // the positions that occur
  charts.push_back(chart(
      "features", "Which features stand out, and which are switched off?",
      "One column a feature of the residual stream, those unusual in most norms first: blue gains are above "
      "their norm's median, orange ones below; the strongest orange is a feature that the norm switches off.",
      fmt::format("Gain over the median by feature and norm, for {} features.", report.features.size()),
      {{"data", values(std::move(table))},
       {"height", row_height(rows.size()) * rows.size()},
       {"mark", {{"type", "rect"}}},
       {"encoding",
        {{"x",
          {{"field", "feature"},
           {"type", "ordinal"},
           {"title", "coordinate"},
           {"sort", order},
           {"axis", {{"labelAngle", -90}, {"labelOverlap", true}}}}},
         {"y", {{"field", "position"}, {"type", "ordinal"}, {"title", nullptr}, {"axis", std::move(axis)}}},
         {"color", ratio_colour()},
         {"tooltip", tooltip({{"ratio", "times the median"}})}}}}));
}

}  // namespace

Json gain_charts(const Report& report) {
  Json charts = Json::array();
  const std::vector<Panel> panels = panels_of(report);
  const GainAxis axis = gain_axis({&report});
  for (std::size_t k = 0; k < panels.size(); ++k) {
    charts.push_back(ridge_chart(report, panels[k], fmt::format("gains-{}", k), axis, k == 0));
    if (panels.size() > 1) charts.back()["panel"] = panels[k].title;
  }
  // The ridges show all of a single norm.
  if (GainMap map = gain_map(report); map.norms > 1) {
    charts.push_back(
        map_chart(std::move(map), "gain-map", "Do the same coordinates stand out in many norms?"));
  }
  features(report, charts);
  return charts;
}

GainAxis gain_axis(std::initializer_list<const Report*> reports) {
  std::vector<double> medians;
  for (const Report* report : reports) {
    for (const NormReport& norm : report->norms) {
      if (has_gain(norm) && norm.gain->median_abs > 0.0) medians.push_back(norm.gain->median_abs);
    }
  }
  if (medians.empty()) return {};
  const auto middle = medians.begin() + static_cast<std::ptrdiff_t>(medians.size() / 2);
  std::nth_element(medians.begin(), middle, medians.end());
  GainAxis axis{.typical = static_cast<int>(std::floor(gain_bins_per_octave * std::log2(*middle)))};
  int low = axis.typical;
  int high = axis.typical;
  for (const Report* report : reports) {
    for (const NormReport& norm : report->norms) {
      if (!has_gain(norm)) continue;
      low = std::min(low, std::max(norm.gain_sizes.begin()->first, axis.typical - most_bins));
      high = std::max(high, std::min(norm.gain_sizes.rbegin()->first, axis.typical + most_bins));
    }
  }
  axis.low = bin_middle(low - 1);
  axis.high = bin_middle(high + 1);
  return axis;
}

std::optional<Json> ridges_of_all(const Report& report, const std::string& id, const GainAxis& axis,
                                  bool explains) {
  Panel panel;
  for (std::size_t i = 0; i < report.norms.size() && panel.norms.size() < most_rows; ++i) {
    if (has_gain(report.norms[i])) panel.norms.push_back(i);
  }
  if (panel.norms.empty()) return {};
  return ridge_chart(report, panel, id, axis, explains);
}

std::optional<Json> map_of_all(const Report& report, const char* id, const char* question) {
  GainMap map = gain_map(report);
  if (map.norms == 0) return {};
  return map_chart(std::move(map), id, question);
}

}  // namespace normscope::figures
