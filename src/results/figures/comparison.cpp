#include <normscope/results/figures.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "chart_parts.hpp"
#include "gain_charts.hpp"

namespace normscope::figures {
namespace {

/// Titles of both panels: the files' names, if these tell them apart.
std::array<std::string, 2> titles_of(const Report& before, const Report& after) {
  if (before.name == after.name) return {"OLD: " + before.path, "NEW: " + after.path};
  return {"OLD: " + before.name, "NEW: " + after.name};
}

void condition(const Report& before, const Report& after, Json& charts) {
  if (norm_names(before) != norm_names(after)) return;
  const std::array<std::string, 2> titles = titles_of(before, after);
  Json rows = Json::array();
  std::size_t furthest = 0;
  double most = 0.0;
  for (std::size_t i = 0; i < after.norms.size(); ++i) {
    const auto& old_image = before.norms[i].image;
    const auto& new_image = after.norms[i].image;
    if (!old_image || !new_image || old_image->lengths.empty() || new_image->lengths.empty()) continue;
    std::size_t which = 0;
    for (const auto* image : {&*old_image, &*new_image}) {
      const double drawn = std::min(image->condition, image->longest / (least_drawn * image->median));
      Json row = depth_row(after, i);
      row.update(
          {{"of", titles[which++]}, {"condition", rounded(image->condition)}, {"drawn", rounded(drawn)}});
      rows.push_back(std::move(row));
    }
    const double change = std::abs(std::log(new_image->condition / old_image->condition));
    if (change <= most) continue;
    most = change;
    furthest = i;
  }
  if (rows.empty()) return;
  const std::string answer =
      most == 0.0 ? "The condition numbers are the same."
                  : fmt::format("Most changed is {}, from {} to {}.", after.norms[furthest].norm.name,
                                format_number(before.norms[furthest].image->condition),
                                format_number(after.norms[furthest].image->condition));
  const Json x = depth_axis(rows, norm_names(after));
  const Json y = ratio_axis(rows, "drawn", "longest over shortest axis");
  const std::string norms = counted(rows.size() / 2, "norm");
  Json tips = tooltip({{"condition", "condition"}});
  tips.push_back({{"field", "of"}, {"title", "of"}});
  charts.push_back(
      chart("condition-both", "How stretched is each norm's image in both?", answer,
            fmt::format("Condition numbers of the images of {} in two checkpoints.", norms),
            {{"data", values(std::move(rows))},
             {"height", 220},
             {"mark", {{"type", "point"}, {"filled", true}, {"size", 45}, {"opacity", 0.8}}},
             {"encoding",
              {{"x", x},
               {"y", y},
               {"color", {{"field", "of"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}}},
               {"shape", {{"field", "of"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}}},
               {"tooltip", std::move(tips)}}}}));
}

}  // namespace

Json side_by_side_charts(const Report& before, const Report& after) {
  Json charts = Json::array();
  const GainAxis axis = gain_axis({&before, &after});
  const std::array<std::string, 2> titles = titles_of(before, after);
  const auto add = [&](std::optional<Json> figure, const std::string& panel) {
    if (!figure) return;
    (*figure)["panel"] = panel;
    charts.push_back(std::move(*figure));
  };
  add(ridges_of_all(before, "gains-old", axis, true), titles[0]);
  add(ridges_of_all(after, "gains-new", axis, false), titles[1]);
  add(map_of_all(before, "gain-map-old", "Which coordinates stand out?"), titles[0]);
  add(map_of_all(after, "gain-map-new", "Which coordinates stand out?"), titles[1]);
  condition(before, after, charts);
  return charts;
}

namespace {

using rewrite::NormComparison;

/// A line over the depth of the model for every series.
Json depth_lines(const rewrite::Comparison& comparison, Json rows, Json y, const char* tip) {
  std::vector<std::string> names;
  for (const NormComparison& norm : comparison.norms) names.push_back(norm.new_name);
  const Json encoding = {
      {"x", depth_axis(rows, names)},
      {"y", std::move(y)},
      {"color", {{"field", "series"}, {"type", "nominal"}, {"title", nullptr}}},
      {"tooltip",
       {{{"field", "name"}, {"title", "norm"}},
        {{"field", "series"}, {"title", "of"}},
        {{"field", "value"}, {"title", tip}, {"type", "quantitative"}, {"format", ".4~g"}}}}};
  return {{"data", values(std::move(rows))},
          {"height", 220},
          {"encoding", encoding},
          {"layer",
           {{{"mark", {{"type", "line"}, {"opacity", 0.35}, {"strokeWidth", 1}}}},
            {{"mark", {{"type", "point"}, {"filled", true}, {"size", 45}, {"opacity", 1}}}}}}};
}

void add_row(Json& rows, std::size_t position, const NormComparison& norm, const char* series, double value) {
  if (!(value > 0.0) || !std::isfinite(value)) return;
  rows.push_back(
      {{"position", position}, {"name", norm.new_name}, {"series", series}, {"value", rounded(value)}});
}

void drift(const rewrite::Comparison& comparison, Json& charts) {
  Json rows = Json::array();
  std::size_t furthest = 0;
  for (std::size_t i = 0; i < comparison.norms.size(); ++i) {
    const NormComparison& norm = comparison.norms[i];
    if (norm.gain_change > comparison.norms[furthest].gain_change) furthest = i;
    double composite = 0.0;
    for (const rewrite::ReaderComparison& reader : norm.readers) {
      composite = std::max({composite, reader.composite, reader.bias});
    }
    add_row(rows, i, norm, "gain", norm.gain_change);
    add_row(rows, i, norm, "bias", norm.bias_change);
    add_row(rows, i, norm, "composite with its readers", composite);
  }
  if (rows.empty()) return;
  const NormComparison& norm = comparison.norms[furthest];
  charts.push_back(chart(
      "drift", "How far has each norm moved?",
      norm.gain_change > 0.0 ? fmt::format("The gain of {} has changed most, by {} of its length.",
                                           norm.new_name, format_number(norm.gain_change))
                             : "No gain has changed.",
      fmt::format("Relative changes of gains, biases and composites of {} norms, on a logarithmic axis.",
                  comparison.norms.size()),
      depth_lines(comparison, std::move(rows), logarithmic("value", "relative change"), "relative change")));
}

void turn(const rewrite::Comparison& comparison, Json& charts) {
  Json rows = Json::array();
  double largest = 0.0;
  for (std::size_t i = 0; i < comparison.norms.size(); ++i) {
    const NormComparison& norm = comparison.norms[i];
    // By the chord of both directions, which is exact for small angles too.
    const double angle =
        2.0 * std::asin(std::sqrt(std::max(0.0, (1.0 - norm.gain_cosine) / 2.0))) * 180.0 / std::numbers::pi;
    largest = std::max(largest, angle);
    rows.push_back({{"position", i}, {"name", norm.new_name}, {"series", "gain"}, {"value", rounded(angle)}});
  }
  if (!(largest > 0.0)) return;
  const std::size_t count = rows.size();
  charts.push_back(
      chart("turn", "Has the direction of the gains turned?",
            fmt::format("By {} degrees at most.", format_number(largest)),
            fmt::format("Angle between old and new gain of {} norms in the order of the forward "
                        "pass.",
                        count),
            depth_lines(comparison, std::move(rows), quantity("value", "angle in degrees"), "degrees")));
}

/// Both models' numbers at the position of a witness, which lie on a line for equal models.
void witness(const rewrite::Comparison& comparison, Json& charts) {
  if (!comparison.witness) return;
  const rewrite::Witness& found = *comparison.witness;
  const char* const what = found.of_features ? "feature" : "token";
  Json rows = Json::array();
  double least = infinity, most = -infinity;
  for (const rewrite::LogitPair& pair : found.logits) {
    if (!std::isfinite(pair.before) || !std::isfinite(pair.after)) continue;
    least = std::min({least, pair.before, pair.after});
    most = std::max({most, pair.before, pair.after});
    rows.push_back({{"token", pair.token},
                    {"old", rounded(pair.before)},
                    {"new", rounded(pair.after)},
                    {"series", pair.token == found.logit.token ? "the witness" : "others"}});
  }
  if (rows.empty()) return;
  const std::size_t count = rows.size();
  const Json line = {{{"old", rounded(least)}, {"new", rounded(least)}},
                     {{"old", rounded(most)}, {"new", rounded(most)}}};
  Json tips = {{{"field", "token"}, {"title", what}, {"type", "quantitative"}},
               {{"field", "old"}, {"title", "in OLD"}, {"type", "quantitative"}, {"format", ".6~g"}},
               {{"field", "new"}, {"title", "in NEW"}, {"type", "quantitative"}, {"format", ".6~g"}}};
  charts.push_back(chart(
      "witness", found.of_features ? "Do both give the same hidden state?" : "Do both give the same logits?",
      fmt::format("No: {} {} gets {} in NEW and {} in OLD.", what, found.logit.token,
                  format_number(found.logit.after), format_number(found.logit.before)),
      fmt::format("Position {} after {} tokens: the {} {}s that differ most, OLD across and NEW up; equal "
                  "ones lie on "
                  "the line.",
                  found.position, found.position + 1, count, what),
      {{"height", 260},
       {"layer",
        {{{"data", values(line)},
          {"mark", {{"type", "line"}, {"strokeWidth", 1}, {"opacity", 0.5}, {"color", "gray"}}},
          {"encoding", {{"x", quantity("old", "in OLD")}, {"y", quantity("new", "in NEW")}}}},
         {{"data", values(std::move(rows))},
          {"mark", {{"type", "point"}, {"filled", true}, {"size", 45}, {"opacity", 0.8}}},
          {"encoding",
           {{"x", quantity("old", "in OLD")},
            {"y", quantity("new", "in NEW")},
            {"color", {{"field", "series"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}}},
            {"shape", {{"field", "series"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}}},
            {"tooltip", std::move(tips)}}}}}}}));
}

}  // namespace

nlohmann::ordered_json comparison_charts(const rewrite::Comparison& comparison) {
  Json charts = Json::array();
  witness(comparison, charts);
  drift(comparison, charts);
  turn(comparison, charts);
  return charts;
}

}  // namespace normscope::figures
