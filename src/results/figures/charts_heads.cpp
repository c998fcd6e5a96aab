#include <normscope/results/figures/analyses.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "chart_parts.hpp"

namespace normscope::figures {
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
          number_at_least(most.spread), counted(most.distance, "position"), number_at_least(at_zero),
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
  bool uniform = true;
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
    uniform = uniform && attention.most_uniform.upper <= 1e-6 * most;
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
  const std::string alike = never_uniform > 0
                                ? counted(never_uniform, "head") + " cannot attend to all keys alike."
                            : uniform ? "Every head can attend to all keys alike."
                                      : "No head is known not to attend to all keys alike.";
  charts.push_back(chart(
      "head-spread", "How uniform and how sharp can each head be?",
      fmt::format("Over {}, a head's sharpest query makes the scores of two keys differ by {}{} to {}. {}",
                  scope(heads), known ? "" : "at most ", number_at_most(*least), number_at_most(*most),
                  alike),
      fmt::format("Spread of scores for {} by layer, from {} to {} at their sharpest.",
                  counted(count_heads(heads, [](const heads::Attention&) { return true; }), "head"),
                  number_at_most(*least), number_at_most(*most)),
      {{"height", 240}, {"layer", {rule, points}}}));
}

}  // namespace

Json head_charts(const models::Model& model, const std::vector<HeadReach>& heads) {
  Json charts = Json::array();
  head_spreads(model, heads, charts);
  head_distances(model, heads, charts);
  return charts;
}

}  // namespace normscope::figures
