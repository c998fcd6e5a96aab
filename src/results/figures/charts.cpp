#include <normscope/results/figures/charts.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/results/figures/analyses.hpp>
#include <normscope/results/figures/ranges.hpp>

#include "chart_parts.hpp"
#include "gain_charts.hpp"

namespace normscope::figures {
namespace {

/// Norms up to which each has its number in a legend.
constexpr std::size_t few_norms = 6;
/// Points that draw one spectrum.
constexpr std::size_t spectrum_points = 64;

/// Points over depth, joined by a thin line for each role where their order is known.
Json depth_figure(const Report& report, Json rows, Json y, Json tips) {
  const Json encoding = {{"x", depth_axis(rows, norm_names(report))},
                         {"y", std::move(y)},
                         {"color", role_colour(rows)},
                         {"tooltip", std::move(tips)}};
  Json layers = Json::array();
  if (std::any_of(rows.begin(), rows.end(), is_ordered)) {
    layers.push_back({{"mark", {{"type", "line"}, {"opacity", 0.35}, {"strokeWidth", 1}}}});
    if (!std::all_of(rows.begin(), rows.end(), is_ordered)) {
      layers[0]["transform"] = {{{"filter", "datum.ordered !== false"}}};
    }
  }
  layers.push_back({{"mark", {{"type", "point"}, {"filled", true}, {"size", 45}, {"opacity", 1}}}});
  return {{"data", values(std::move(rows))},
          {"height", 220},
          {"encoding", encoding},
          {"layer", std::move(layers)}};
}

/// One row for each norm that `keep` accepts: position, name, role, and the fields that `fill` adds.
template <typename Keep, typename Fill>
Json rows(const Report& report, Keep keep, Fill fill) {
  Json result = Json::array();
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    const NormReport& norm = report.norms[i];
    if (!keep(norm)) continue;
    Json row = depth_row(report, i);
    fill(norm, row);
    result.push_back(std::move(row));
  }
  return result;
}

bool has_image(const NormReport& norm) { return norm.image && norm.image->semi_axes > 0; }

std::string percent(double value) { return number(100.0 * value) + " %"; }

/// "from 2.1 to 41" over a field of the rows.
std::string range(const Json& table, const char* field, std::string (*text)(double) = number) {
  const auto [low, high] = extent(table, field);
  return from_to(low, high, text);
}

std::string text_alternative(const char* what, const Json& table, const char* field) {
  return fmt::format(
      "{} for {} norms{}, {}.", what, table.size(),
      std::all_of(table.begin(), table.end(), is_ordered) ? " in the order of the forward pass" : "",
      range(table, field));
}

void condition(const Report& report, Json& charts) {
  const Json table = rows(report, has_image, [](const NormReport& norm, Json& row) {
    row["condition"] = norm.image->condition;
    row["drawn"] = std::min(norm.image->condition, norm.image->longest / (least_drawn * norm.image->median));
    row["ratio"] = norm.image->top_axes[0].ratio_to_median;
  });
  if (table.empty()) return;
  charts.push_back(
      chart("condition", "How stretched is each norm's image?",
            fmt::format("The longest axis over the shortest is {}.", range(table, "condition")),
            text_alternative("Condition number of the image", table, "condition"),
            depth_figure(report, table, ratio_axis(table, "drawn", "longest over shortest axis"),
                         tooltip({{"condition", "condition"}, {"ratio", "longest over median"}}))));
  charts.push_back(chart("longest-axis", "Does one axis stand out?",
                         fmt::format("The longest axis is {} times the median one.", range(table, "ratio")),
                         text_alternative("Longest over median semi-axis", table, "ratio"),
                         depth_figure(report, table, ratio_axis(table, "ratio", "longest over median axis"),
                                      tooltip({{"ratio", "longest over median"}}))));
}

void spectra(const Report& report, Json& charts) {
  Json table = Json::array();
  bool ordered = true;
  for (std::size_t i = 0; i < report.norms.size(); ++i) {
    if (!has_image(report.norms[i])) continue;
    ordered = ordered && report.norms[i].norm.order_known;
    for (const Json& drawn :
         spectrum_rows(report.norms[i].image->lengths, report.norms[i].image->median, spectrum_points)) {
      Json row = {{"position", i}, {"name", report.norms[i].norm.name}};
      row.update(drawn);
      table.push_back(std::move(row));
    }
  }
  if (table.empty()) return;
  Json legend = {{"format", "d"}, {"tickMinStep", 1}};
  if (report.norms.size() <= few_norms) {  // halves of a step would be printed as whole numbers
    legend["values"] = Json::array();
    for (std::size_t i = 0; i < report.norms.size(); ++i) legend["values"].push_back(i);
  }
  charts.push_back(chart(
      "spectra", "What shape is each ellipsoid?",
      "Each line holds one norm's semi-axes, longest first: flat is a sphere, a cliff at the left is a few "
      "outlier axes.",
      fmt::format("Semi-axes by rank on logarithmic axes, one line for each of {} norms; lengths are {}.",
                  report.norms.size(), range(table, "length")),
      {{"data", values(table)},
       {"height", 280},
       {"mark", {{"type", "line"}, {"opacity", 0.7}, {"strokeWidth", 1.3}}},
       {"encoding",
        {{"x", logarithmic("rank", "rank of the axis")},
         {"y", ratio_axis(table, "length", "semi-axis")},
         {"detail", {{"field", "position"}, {"type", "nominal"}}},
         {"color",
          {{"field", "position"},
           {"type", "quantitative"},
           {"title", ordered ? "depth" : "norm"},
           {"legend", legend}}},
         {"tooltip", tooltip({{"rank", "rank"}, {"length", "semi-axis"}})}}}}));
}

void effective_dimension(const Report& report, Json& charts) {
  const Json table = rows(report, has_image, [](const NormReport& norm, Json& row) {
    row["share"] = norm.image->effective_dimension / static_cast<double>(norm.image->semi_axes);
    row["dimension"] = norm.image->effective_dimension;
    row["top1"] = norm.image->energy_top_1;
    row["top8"] = norm.image->energy_top_8;
  });
  if (table.empty()) return;
  charts.push_back(chart(
      "effective-dimension", "How many directions does each image really use?",
      fmt::format("The effective dimension is {} of the axes there are.", range(table, "share", percent)),
      text_alternative("Participation ratio of the image over its axes", table, "share"),
      depth_figure(report, table,
                   {{"field", "share"},
                    {"type", "quantitative"},
                    {"title", "effective dimension over axes"},
                    {"axis", {{"format", "%"}}},
                    {"scale", {{"domain", {0, 1}}}}},
                   tooltip({{"dimension", "effective dimension"},
                            {"top1", "energy of the longest"},
                            {"top8", "energy of the eight longest"}}))));
  Json shares = Json::array();
  for (const Json& row : table) {
    for (const auto& [field, what] :
         {std::pair{"top1", "the longest axis"}, std::pair{"top8", "the eight longest"}}) {
      shares.push_back(row);
      shares.back()["role"] = what;
      shares.back()["share"] = row[field];
    }
  }
  Json figure = depth_figure(report, shares,
                             {{"field", "share"},
                              {"type", "quantitative"},
                              {"title", "share of the energy"},
                              {"axis", {{"format", "%"}}}},
                             tooltip({{"share", "share"}}));
  figure["encoding"]["color"]["title"] = "held by";
  charts.push_back(chart("energy", "How much do the top axes hold?",
                         fmt::format("The longest axis alone holds {} of the squared semi-axes' sum.",
                                     range(table, "top1", percent)),
                         text_alternative("Share of the energy in the longest axis", table, "top1"), figure));
}

void null_directions(const Report& report, Json& charts) {
  const Json table = rows(
      report, [](const NormReport& norm) { return norm.null_space && norm.null_space->cosine_to_ones; },
      [](const NormReport& norm, Json& row) { row["cosine"] = *norm.null_space->cosine_to_ones; });
  if (table.empty()) return;
  charts.push_back(
      chart("null-direction", "Along which direction does no output vary?",
            fmt::format("Before the gain along all-ones; after it, the direction's cosine to all-ones is {}.",
                        range(table, "cosine")),
            text_alternative("Cosine of the erased direction to all-ones", table, "cosine"),
            depth_figure(report, table,
                         {{"field", "cosine"},
                          {"type", "quantitative"},
                          {"title", "cosine to all-ones"},
                          {"scale", {{"domain", {0, 1}}}}},
                         tooltip({{"cosine", "cosine to all-ones"}}))));
}

void neighbours(const Report& report, Json& charts) {
  Json table = rows(
      report, [](const NormReport& norm) { return norm.next.has_value(); },
      [&](const NormReport& norm, Json& row) {
        row["similarity"] = norm.next->similarity;
        row["top"] = norm.next->top_axis_cosine;
        row["name"] = norm.norm.name + " → " + report.norms[norm.next->index].norm.name;
      });
  if (table.empty()) return;
  charts.push_back(
      chart("similarity", "Does the next norm stretch the same directions?",
            fmt::format("Similarity of each image to the next one's is {}.", range(table, "similarity")),
            text_alternative("Similarity to the next norm's image", table, "similarity"),
            depth_figure(report, table, quantity("similarity", "similarity to the next"),
                         tooltip({{"similarity", "similarity"}, {"top", "cosine of the longest axes"}}))));
}

void biases(const Report& report, Json& charts) {
  const Json table = rows(
      report, [](const NormReport& norm) { return norm.shift_over_radius.has_value(); },
      [](const NormReport& norm, Json& row) { row["shift"] = *norm.shift_over_radius; });
  if (table.empty()) return;
  charts.push_back(chart(
      "shift", "How far is the ellipsoid moved from the origin?",
      fmt::format("The bias is {} times the image's root-mean-square radius; above 1, most of every output "
                  "is the same constant vector.",
                  range(table, "shift")),
      text_alternative("Length of the bias over the image's radius", table, "shift"),
      depth_figure(report, table, quantity("shift", "bias over radius"),
                   tooltip({{"shift", "bias over radius"}}))));
}

}  // namespace

Json charts(const Report& report) {
  Json all = Json::array();
  condition(report, all);
  spectra(report, all);
  effective_dimension(report, all);
  for (Json& of_gains : gain_charts(report)) all.push_back(std::move(of_gains));
  null_directions(report, all);
  neighbours(report, all);
  biases(report, all);
  for (Json& of_heads : head_charts(report.model, report.heads)) all.push_back(std::move(of_heads));
  for (Json& of_ranges : range_charts(report.ranges)) all.push_back(std::move(of_ranges));
  return all;
}

}  // namespace normscope::figures
