#include <normscope/results/figures.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "chart_parts.hpp"

namespace normscope::figures {
namespace {

using analysis::ModelRanges;
using analysis::NumberType;
using analysis::ReaderRanges;

/// A type has a line if its largest number is within this factor of the numbers drawn.
constexpr double drawn_within = 1000.0;
constexpr const char* size_title = "largest size of a number";

/// Readers of one role behind one norm.
struct Mark {
  double worst = 0.0, typical = 0.0, ratio = 0.0;
  std::size_t readers = 0, rows = 0, never_positive = 0, never_negative = 0;

  void add(const ReaderRanges& reader) {
    if (reader.size() > worst) {
      worst = reader.size();
      typical = reader.typical;
    }
    ratio = std::max(ratio, reader.ratio());
    ++readers;
    rows += reader.rows;
    never_positive += reader.never_positive.size();
    never_negative += reader.never_negative.size();
  }
};

std::vector<std::string> names_of(const ModelRanges& found) {
  std::vector<std::string> names;
  for (const auto& norm : found.norms) names.push_back(norm.name);
  return names;
}

/// A row for each mark that has a size.
Json rows_of(const ModelRanges& found) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < found.norms.size(); ++i) {
    std::map<std::string, Mark> marks;
    for (const ReaderRanges& reader : found.norms[i].readers) {
      if (reader.refused.empty()) marks[reader.role].add(reader);
    }
    for (const auto& [role, mark] : marks) {
      if (!(mark.worst > 0.0) || !(mark.typical > 0.0)) continue;
      rows.push_back({{"position", i},
                      {"name", found.norms[i].name},
                      {"role", role},
                      {"worst", rounded(mark.worst)},
                      {"typical", rounded(mark.typical)},
                      {"ratio", rounded(mark.ratio)},
                      {"steps", rounded(analysis::int8_steps(mark.ratio, 1.0))},
                      {"readers", mark.readers},
                      {"rows", mark.rows},
                      {"never_positive", mark.never_positive},
                      {"never_negative", mark.never_negative}});
    }
  }
  return rows;
}

/// The norm and the linear map.
Json tips_of_maps(std::initializer_list<std::pair<const char*, const char*>> fields) {
  Json tips = tooltip(fields);
  const Json map = {{"field", "role"}, {"title", "read by"}};
  tips.insert(tips.begin() + 1, map);
  return tips;
}

/// How far each small type is from overflow.
std::string margins(const ModelRanges& found, double largest) {
  std::string text;
  for (const NumberType& type : analysis::number_types) {
    if (type.largest > 1e30) continue;
    const std::size_t beyond = analysis::overflowing(found, type);
    text += text.empty() ? " " : "; ";
    text += beyond > 0 ? fmt::format("{} overflows at some input of {}", type.title, counted(beyond, "map"))
                       : fmt::format("{} holds {} times as much", type.title,
                                     format_at_least(type.largest / largest));
  }
  return text + ".";
}

/// Lines at the largest numbers of types, if these are near the numbers drawn, with the types' names.
Json limits(double largest) {
  Json rows = Json::array();
  for (const NumberType& type : analysis::number_types) {
    if (type.largest > drawn_within * largest) continue;
    rows.push_back({{"limit", type.largest}, {"type", fmt::format("{} {:g}", type.title, type.largest)}});
  }
  return rows;
}

/// Whether all maps have the same ratio as printed: without biases it is the root of the width.
bool constant_ratio(const analysis::RangeSummary& summary) {
  return format_number(summary.least_ratio) == format_number(summary.most_ratio);
}

void sizes(const ModelRanges& found, const analysis::RangeSummary& summary, const Json& table, Json& charts) {
  const Json size = logarithmic("worst", size_title);
  Json layers = {{{"mark", {{"type", "rule"}, {"opacity", 0.45}}},
                  {"encoding", {{"y", size}, {"y2", {{"field", "typical"}}}, {"color", role_colour(table)}}}},
                 {{"mark", {{"type", "point"}, {"filled", true}, {"size", 45}, {"opacity", 1}}},
                  {"encoding", {{"y", size}, {"color", role_colour(table)}}}}};
  const double largest = summary.largest->size();
  if (Json lines = limits(largest); !lines.empty()) {
    const Json limit = quantity("limit", size_title);
    Json rule = {{"data", values(lines)},
                 {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"opacity", 0.8}}},
                 {"encoding", {{"y", limit}}}};
    // float16 and FP8 E5M2 end close to each other: one name stands above its line, the other below.
    Json name = {{"data", values(std::move(lines))},
                 {"mark",
                  {{"type", "text"},
                   {"align", "left"},
                   {"dx", 4},
                   {"dy", {{"expr", "datum.limit == 57344 ? 9 : -6"}}},
                   {"fontSize", 10}}},
                 {"encoding", {{"y", limit}, {"text", {{"field", "type"}}}}}};
    name["encoding"]["x"] = {{"value", 0}};
    rule["encoding"]["x"] = {{"value", 0}};
    rule["encoding"]["x2"] = {{"value", "width"}};
    rule["encoding"]["color"] = {{"value", "gray"}};
    for (Json* layer : {&rule, &name}) {
      (*layer)["encoding"]["tooltip"] = nullptr;
      layers.push_back(std::move(*layer));
    }
  }
  charts.push_back(chart(
      "ranges", "How large can the numbers behind each norm become?",
      fmt::format("For every input, the outputs of linear maps behind a norm are at most {} in magnitude ({} "
                  "behind {}).{} Dots are the largest size over every input, lines reach down to the typical "
                  "size{}.",
                  format_at_most(largest), summary.largest->role, summary.largest_norm->name,
                  margins(found, largest),
                  constant_ratio(summary)
                      ? fmt::format(", smaller by a factor of {}", format_number(summary.most_ratio))
                      : ""),
      fmt::format("Largest and typical size of the outputs of {} on a logarithmic axis, in the order of the "
                  "forward pass.",
                  counted(summary.known, "linear map")),
      {{"data", values(table)},
       {"height", 280},
       {"encoding",
        {{"x", depth_axis(table, names_of(found))},
         {"tooltip",
          tips_of_maps({{"worst", "largest"}, {"typical", "typical"}, {"ratio", "largest over typical"}})}}},
       {"layer", std::move(layers)}}));
}

void ratios(const ModelRanges& found, const analysis::RangeSummary& summary, const Json& table,
            Json& charts) {
  if (constant_ratio(summary)) return;
  const Json encoding = {{"x", depth_axis(table, names_of(found))},
                         {"y", ratio_axis(table, "ratio", "largest over typical size")},
                         {"color", role_colour(table)},
                         {"tooltip", tips_of_maps({{"ratio", "largest over typical"},
                                                   {"steps", "int8 steps of a typical number"}})}};
  charts.push_back(chart(
      "worst-over-typical", "What does it cost a quantizer to hold every input?",
      fmt::format("The largest number is {} to {} times the typical one. Of the 127 steps of an int8 scale "
                  "that no input exceeds, a typical number takes {} to {}.",
                  format_number(summary.least_ratio), format_number(summary.most_ratio),
                  format_number(analysis::int8_steps(summary.most_ratio, 1.0)),
                  format_number(analysis::int8_steps(summary.least_ratio, 1.0))),
      fmt::format("Largest over typical size of the outputs of {} in the order of the forward pass.",
                  counted(summary.known, "linear map")),
      {{"data", values(table)},
       {"height", 220},
       {"encoding", encoding},
       {"layer",
        {{{"mark", {{"type", "line"}, {"opacity", 0.35}, {"strokeWidth", 1}}}},
         {{"mark", {{"type", "point"}, {"filled", true}, {"size", 45}, {"opacity", 1}}}}}}}));
}

void fixed_signs(const ModelRanges& found, const analysis::RangeSummary& summary, const Json& table,
                 Json& charts) {
  Json rows = Json::array();
  for (const Json& row : table) {
    for (const auto& [field, sign] :
         {std::pair{"never_positive", "never positive"}, std::pair{"never_negative", "never negative"}}) {
      if (row[field] == 0) continue;
      rows.push_back({{"position", row["position"]},
                      {"name", row["name"]},
                      {"role", row["role"]},
                      {"sign", sign},
                      {"count", row[field]},
                      {"rows", row["rows"]}});
    }
  }
  if (rows.empty()) return;
  Json count = quantity("count", "outputs");
  count["stack"] = nullptr;
  // No more ticks than outputs: Vega takes half steps in spite of a tickMinStep.
  int most = 1;
  for (const Json& row : rows) most = std::max(most, row["count"].get<int>());
  count["axis"] = {{"format", "d"}, {"tickCount", std::min(most, 5)}};
  const Json encoding = {{"x", depth_axis(rows, names_of(found))},
                         {"color", {{"field", "sign"}, {"type", "nominal"}, {"title", nullptr}}},
                         {"tooltip", tips_of_maps({{"count", "outputs"}, {"rows", "of"}})}};
  charts.push_back(chart(
      "fixed-signs", "Which units never fire, or never stop?",
      fmt::format("{} of linear maps can never be positive, whatever enters the norm (behind a ReLU: dead "
                  "units), {} never negative (always on).",
                  counted(summary.never_positive, "output"), summary.never_negative),
      fmt::format("Numbers of outputs that keep one sign, by norm and linear map, {} in all.",
                  summary.never_positive + summary.never_negative),
      {{"data", values(rows)},
       {"height", 200},
       {"encoding", encoding},
       {"layer",
        {{{"mark", {{"type", "rule"}, {"opacity", 0.5}}},
          {"encoding", {{"y", count}, {"y2", {{"datum", 0}}}}}},
         {{"mark", {{"type", "point"}, {"filled", true}, {"size", 45}, {"opacity", 1}}},
          {"encoding", {{"y", count}}}}}}}));
}

}  // namespace

Json range_charts(const ModelRanges& found) {
  Json charts = Json::array();
  const analysis::RangeSummary summary = analysis::summarize(found);
  const Json table = rows_of(found);
  if (table.empty()) return charts;
  sizes(found, summary, table, charts);
  ratios(found, summary, table, charts);
  fixed_signs(found, summary, table, charts);
  return charts;
}

}  // namespace normscope::figures
