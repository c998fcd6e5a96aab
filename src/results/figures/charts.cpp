#include <normscope/results/figures.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "chart_parts.hpp"
#include "fields.hpp"
#include "gain_charts.hpp"

namespace normscope::figures {

/// One question, its figure, and the answer in words.
struct Chart {
  const char* id = "";
  const char* question = "";
  std::string answer{};
  std::string description{};
  Json spec{};
  std::optional<std::string> panel{};
};

template <class V>
void fields(V& v, const Chart& chart) {
  v.define("chart");
  v("id", chart.id, "its name in links and files");
  v("question", chart.question);
  v("answer", chart.answer, "in one sentence");
  v("description", chart.description, "for those who do not see it");
  v("spec", results::AnyObject{chart.spec}, "Vega-Lite specification with its data");
  v.maybe("panel", chart.panel,
          "its title among the charts of one question, which stand side by side; absent for a question of "
          "one chart");
}

Json chart(const char* id, const char* question, const std::string& answer, const std::string& description,
           Json spec) {
  spec["width"] = "container";
  return results::json_of(Chart{id, question, answer, description, vega::specification(std::move(spec))});
}

namespace {

/// Largest number of lines in the figure over distance; with more heads, each layer has one line.
constexpr std::size_t most_lines = 64;

/// "every context", or "contexts of at most 512 positions" where rotary heads are bounded over these.
std::string scope(const std::vector<HeadReach>& heads) {
  std::set<std::size_t> within;
  for (const HeadReach& reach : heads) {
    if (reach.attention) within.insert(reach.attention->distances ? reach.attention->distances->within : 0);
  }
  if (within.size() != 1 || *within.begin() == 0) return "every context";
  return "contexts of at most " + counted(*within.begin(), "position");
}

/// "decoder " in a model of several stacks.
std::string stack_of(const models::Head& head) { return head.stack.empty() ? "" : head.stack + " "; }

/// ", first pass" where passes through shared weights read different norms.
std::string passes_of(const HeadReach& reach) {
  return reach.pass.empty() ? "" : reach.pass == "first" ? ", first pass" : ", later passes";
}

/// Number of different heads that `keep` accepts.
template <typename Keep>
std::size_t count_heads(const std::vector<HeadReach>& heads, Keep keep) {
  std::set<std::size_t> kept;
  for (const HeadReach& reach : heads) {
    if (reach.attention && keep(*reach.attention)) kept.insert(reach.head);
  }
  return kept.size();
}

/// Rows with a distance and the attained spread of two keys at that distance: one line per head, or per layer
/// if there are many heads.
Json curve_rows(const models::Model& model, const std::vector<HeadReach>& heads, std::size_t lines) {
  Json table = Json::array();
  std::map<std::tuple<std::string, int, std::string, std::size_t>, double> layers;
  for (const HeadReach& reach : heads) {
    if (!reach.attention || !reach.attention->distances) continue;
    const models::Head& head = model.heads[reach.head];
    for (const heads::OverDistances::At& at : reach.attention->distances->curve) {
      if (!(at.spread > 0.0)) continue;
      if (lines > most_lines) {
        double& most = layers[{stack_of(head), head.layer, passes_of(reach), at.distance}];
        most = std::max(most, at.spread);
        continue;
      }
      table.push_back({{"line", head.place() + passes_of(reach)},
                       {"layer", head.layer},
                       {"distance", at.distance},
                       {"spread", rounded(at.spread)}});
    }
  }
  for (const auto& [place, spread] : layers) {
    const auto& [stack, layer, passes, distance] = place;
    table.push_back({{"line", fmt::format("{}layer {}{}", stack, layer, passes)},
                     {"layer", layer},
                     {"distance", distance},
                     {"spread", rounded(spread)}});
  }
  return table;
}

/// Few layers have a colour each, many a shade.
Json layer_color(const Json& table) {
  std::set<int> layers;
  for (const Json& row : table) layers.insert(row["layer"].get<int>());
  Json color = {{"field", "layer"}, {"type", "nominal"}, {"title", "layer"}};
  if (layers.size() <= 6) return color;
  color["type"] = "quantitative";
  color["legend"] = {{"format", "d"}, {"tickMinStep", 1}};
  return color;
}

void head_distances(const models::Model& model, const std::vector<HeadReach>& heads, Json& charts) {
  const auto has_curve = [](const heads::Attention& attention) {
    return attention.distances && !attention.distances->curve.empty();
  };
  const auto lines = std::count_if(heads.begin(), heads.end(), [&](const HeadReach& reach) {
    return reach.attention && has_curve(*reach.attention);
  });
  const Json table = curve_rows(model, heads, static_cast<std::size_t>(lines));
  if (table.empty()) return;
  heads::OverDistances::At most{};
  double at_zero = 0.0;
  std::set<std::size_t> distances;
  for (const HeadReach& reach : heads) {
    if (!reach.attention || !reach.attention->distances) continue;
    for (const heads::OverDistances::At& at : reach.attention->distances->curve) {
      if (!(at.spread > 0.0)) continue;
      distances.insert(at.distance);
      if (at.spread > most.spread) most = at;
      if (at.distance == 0) at_zero = std::max(at_zero, at.spread);
    }
  }
  Json distance = quantity("distance", "distance of both keys from the query");
  distance["scale"] = {{"type", "symlog"}, {"nice", false}};
  Json ticks = {0, 1};
  for (std::size_t tick = 10; tick <= *distances.rbegin(); tick *= 10) ticks.push_back(tick);
  distance["axis"] = {{"values", ticks}};
  const Json tips = {{{"field", "line"}, {"title", "head"}},
                     {{"field", "distance"}, {"type", "quantitative"}},
                     {{"field", "spread"}, {"type", "quantitative"}, {"format", ".4~g"}}};
  charts.push_back(chart(
      "head-distance", "At which distances can heads be sharp?",
      fmt::format(
          "The scores of two keys at one distance from the query can differ by {}, where that distance is "
          "{}; at distance 0 by {}. Computed at {} and joined by lines, which do not show what lies "
          "between. Keys at different distances can differ by more: see the bounds of each head.",
          format_at_least(most.spread), counted(most.distance, "position"), format_at_least(at_zero),
          counted(distances.size(), "distance")),
      fmt::format("Attained spread of scores between two keys at equal distance, by distance, for {}.",
                  counted(count_heads(heads, has_curve), "head")),
      {{"data", values(table)},
       {"height", 240},
       {"encoding",
        {{"x", distance},
         {"y", logarithmic("spread", "spread of scores between keys there")},
         {"detail", {{"field", "line"}, {"type", "nominal"}}},
         {"color", layer_color(table)},
         {"tooltip", tips}}},
       {"layer",
        {{{"mark", {{"type", "line"}, {"opacity", 0.35}, {"strokeWidth", 1}}}},
         {{"mark", {{"type", "point"}, {"filled", true}, {"size", 14}, {"opacity", 0.8}}}}}}}));
}

void head_spreads(const models::Model& model, const std::vector<HeadReach>& heads, Json& charts) {
  Json table = Json::array();
  std::vector<double> sharpest;
  bool by_passes = false;
  bool known = true;
  for (const HeadReach& reach : heads) {
    if (!reach.attention) continue;
    const heads::Attention& attention = *reach.attention;
    const models::Head& head = model.heads[reach.head];
    const std::string passes = passes_of(reach);
    by_passes = by_passes || !passes.empty();
    const auto add = [&](const char* what, double spread) {
      // A logarithmic axis cannot show values that are zero or negligible.
      if (!(spread > 1e-6 * attention.sharpest.upper)) return false;
      table.push_back({{"layer", head.layer},
                       {"place", fmt::format("{}{}{}", stack_of(head), head.layer, passes)},
                       {"head", head.head},
                       {"what", what},
                       {"spread", rounded(spread)}});
      return true;
    };
    const double most = attention.sharpest.upper;
    if (add("sharpest query", most)) sharpest.push_back(most);
    add("most uniform query", attention.most_uniform.lower);
    known = known && attention.narrow();
  }
  if (table.empty()) return;
  const Json label = {
      {{"spread", rounded(analysis::singling_out)}, {"label", "half of the attention on one of 1024 keys"}}};
  const Json words = {{"type", "text"}, {"align", "left"}, {"baseline", "bottom"},
                      {"x", 4},         {"dy", -3},        {"opacity", 0.8}};
  const Json rule = {{"data", values(label)},
                     {"encoding", {{"y", quantity("spread", "")}}},
                     {"layer",
                      {{{"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"opacity", 0.6}}}},
                       {{"mark", words}, {"encoding", {{"text", {{"field", "label"}}}}}}}}};
  // In their order, which is by layer, the first pass before later ones.
  const Json layer_axis = {{"field", "place"},
                           {"type", "ordinal"},
                           {"title", by_passes ? "layer, and passes through its weights" : "layer"},
                           {"sort", nullptr},
                           {"axis", {{"labelAngle", 0}, {"labelOverlap", true}}}};
  const Json tips = {{{"field", "place"}, {"title", "layer"}},
                     {{"field", "head"}},
                     {{"field", "what"}, {"title", "query"}},
                     {{"field", "spread"}, {"type", "quantitative"}, {"format", ".4~g"}}};
  const Json points = {
      {"data", values(table)},
      {"mark", {{"type", "point"}, {"filled", true}, {"size", 40}, {"opacity", 0.75}}},
      {"encoding",
       {{"x", layer_axis},
        {"y", logarithmic("spread", "spread of scores, largest between two keys")},
        {"color", {{"field", "what"}, {"type", "nominal"}, {"title", nullptr}, {"sort", nullptr}}},
        {"tooltip", tips}}}};
  const auto [least, most] = std::minmax_element(sharpest.begin(), sharpest.end());
  const std::size_t never_uniform = count_heads(heads, [](const heads::Attention& attention) {
    return attention.most_uniform.lower > 1e-6 * attention.sharpest.upper;
  });
  const std::string alike =
      never_uniform > 0 ? " " + counted(never_uniform, "head") + " cannot attend to all keys alike." : "";
  charts.push_back(chart(
      "head-spread", "How uniform and how sharp can each head be?",
      fmt::format("Over {}, a head's sharpest query makes the scores of two keys differ by {}{} to {}.{}",
                  scope(heads), known ? "" : "at most ", format_at_most(*least), format_at_most(*most),
                  alike),
      fmt::format("Spread of scores for {} by layer, from {} to {} at their sharpest.",
                  counted(count_heads(heads, [](const heads::Attention&) { return true; }), "head"),
                  format_at_most(*least), format_at_most(*most)),
      {{"height", 240}, {"layer", {rule, points}}}));
}

}  // namespace

Json head_charts(const models::Model& model, const std::vector<HeadReach>& heads) {
  Json charts = Json::array();
  head_spreads(model, heads, charts);
  head_distances(model, heads, charts);
  return charts;
}

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

std::string percent(double value) { return format_number(100.0 * value) + " %"; }

/// "from 2.1 to 41" over a field of the rows.
std::string range(const Json& table, const char* field, std::string (*text)(double) = format_number) {
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
            fmt::format("The longest axis is {} times the shortest.", range(table, "condition")),
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
        {{"x", rank_axis("rank of the axis")},
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
  charts.push_back(chart("null-direction", "Along which direction does no output vary?",
                         fmt::format("Before its gain, a norm removes all-ones; after it, the cosine of "
                                     "what it removes to all-ones is {}.",
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
  Json all = cause_charts(report);
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

namespace normscope::results {

Json describe_charts(SchemaMaker& maker) { return SchemaMaker::list_of(maker.schema_of(figures::Chart{})); }

}  // namespace normscope::results
