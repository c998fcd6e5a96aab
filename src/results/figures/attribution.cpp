#include <normscope/results/figures.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "chart_parts.hpp"

namespace normscope::figures {
namespace {

using analysis::Attribution;
using analysis::ComponentEffect;
using analysis::SubsetBound;

/// Components that are drawn, those of the largest effects.
constexpr std::size_t most_components = 40;

std::vector<const ComponentEffect*> largest(const Attribution& result) {
  std::vector<const ComponentEffect*> order;
  for (const ComponentEffect& component : result.components) order.push_back(&component);
  std::stable_sort(order.begin(), order.end(), [](const ComponentEffect* a, const ComponentEffect* b) {
    return std::abs(a->effect.exact) > std::abs(b->effect.exact);
  });
  order.resize(std::min(order.size(), most_components));
  return order;
}

/// A bar of two parts for each component, frozen and price, and their sum as a tick.
Json component_chart(const Attribution& result) {
  const std::vector<const ComponentEffect*> drawn = largest(result);
  Json parts = Json::array(), sums = Json::array();
  std::size_t flips = 0;
  for (const ComponentEffect& component : result.components) {
    flips += component.effect.frozen * component.effect.exact < 0.0 ? 1 : 0;
  }
  for (const ComponentEffect* const component : drawn) {
    const analysis::Effect& effect = component->effect;
    parts.push_back({{"name", component->name}, {"part", "frozen"}, {"change", rounded(effect.frozen)}});
    parts.push_back(
        {{"name", component->name}, {"part", "price of freezing"}, {"change", rounded(effect.price)}});
    sums.push_back({{"name", component->name}, {"exact", rounded(effect.exact)}});
  }
  const Json y = {{"field", "name"},
                  {"type", "nominal"},
                  {"sort", nullptr},
                  {"title", "component that is removed"},
                  {"axis", {{"labelLimit", 170}}}};
  Json spec = {
      {"height", 16 * std::max<std::size_t>(1, drawn.size())},
      {"layer",
       {{{"data", values(std::move(parts))},
         {"mark", "bar"},
         {"encoding",
          {{"y", y},
           {"x", {{"field", "change"}, {"type", "quantitative"}, {"title", "change of the logit"}}},
           {"color",
            {{"field", "part"},
             {"type", "nominal"},
             {"title", nullptr},
             {"scale", {{"domain", {"frozen", "price of freezing"}}, {"range", {"#4c78a8", "#f58518"}}}}}},
           {"tooltip",
            {{{"field", "name"}, {"title", "component"}},
             {{"field", "part"}, {"title", "part"}},
             {{"field", "change"}, {"title", "change"}, {"type", "quantitative"}, {"format", ".4~g"}}}}}}},
        {{"data", values(std::move(sums))},
         {"mark", {{"type", "tick"}, {"thickness", 3}, {"opacity", 1}, {"color", "#e45756"}}},
         {"encoding",
          {{"y", y},
           {"x", {{"field", "exact"}, {"type", "quantitative"}}},
           {"tooltip",
            {{{"field", "name"}, {"title", "component"}},
             {{"field", "exact"},
              {"title", "exact change"},
              {"type", "quantitative"},
              {"format", ".4~g"}}}}}}}}}};
  return chart("attribution",
               "What does removing each component do to the logit, and what does freezing hide?",
               fmt::format("Freezing has the wrong sign for {} of {}.", flips,
                           counted(result.components.size(), "component")),
               fmt::format("Frozen change and price of freezing; the red tick is their sum, the exact change "
                           "behind the final norm.{}",
                           drawn.size() < result.components.size()
                               ? fmt::format(" The {} largest are drawn.", drawn.size())
                               : ""),
               std::move(spec));
}

/// Tokens that are drawn, the last ones.
constexpr std::size_t most_tokens_drawn = 64;

/// "3 attention", with the biases; or the component's own name.
std::string layer_part(const forward::Component& component) {
  using Kind = forward::Component::Kind;
  if (!component.layer) return component.name();
  const bool attends = component.kind == Kind::head || component.kind == Kind::attention_bias;
  return fmt::format("{} {}", *component.layer, attends ? "attention" : "mlp");
}

/// The share of each layer's attention and MLP in the reading at each position.
Json position_chart(const Attribution& result, const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, std::vector<double>>> parts;
  for (const ComponentEffect& component : result.components) {
    if (!component.component || component.shares.empty()) return {};
    const std::string name = layer_part(*component.component);
    if (parts.empty() || parts.back().first != name) parts.push_back({name, {}});
    std::vector<double>& sums = parts.back().second;
    sums.resize(component.shares.size());
    for (std::size_t t = 0; t < sums.size(); ++t) sums[t] += component.shares[t];
  }
  if (parts.empty()) return {};
  const std::size_t count = parts.front().second.size();
  const std::size_t first = count > most_tokens_drawn ? count - most_tokens_drawn : 0;
  Json rows = Json::array();
  for (const auto& [name, sums] : parts) {
    for (std::size_t t = first; t < count; ++t) {
      rows.push_back({{"name", name},
                      {"token", fmt::format("{} {}", t, shown_token(names, result.tokens[t]))},
                      {"share", rounded(sums[t])}});
    }
  }
  const auto ends = extent(rows, "share");
  const double largest_share = std::max({-ends.first, ends.second, 1e-12});
  Json spec = {
      {"data", values(std::move(rows))},
      {"height", 18 * parts.size()},
      {"mark", "rect"},
      {"encoding",
       {{"x",
         {{"field", "token"},
          {"type", "nominal"},
          {"sort", nullptr},
          {"title", "read after token"},
          {"axis", {{"labelAngle", -45}, {"labelLimit", 90}, {"labelOverlap", true}}}}},
        {"y",
         {{"field", "name"},
          {"type", "nominal"},
          {"sort", nullptr},
          {"title", "part of the model"},
          {"axis", {{"labelLimit", 170}}}}},
        {"color",
         {{"field", "share"},
          {"type", "quantitative"},
          {"title", "share of the logit"},
          {"scale", {{"scheme", "blueorange"}, {"domain", {-largest_share, largest_share}}}}}},
        {"tooltip",
         {{{"field", "name"}, {"title", "part"}},
          {{"field", "token"}, {"title", "after token"}},
          {{"field", "share"}, {"title", "share"}, {"type", "quantitative"}, {"format", ".4~g"}}}}}}};
  return chart(
      "attribution-positions", "Where does each layer add to this logit?",
      fmt::format("Shares of {} to {}.", format_number(ends.first), format_number(ends.second)),
      fmt::format("The share of each layer's attention and MLP, biases included, in the same logit read "
                  "after each token.{}",
                  first > 0 ? fmt::format(" The last {} tokens are drawn.", count - first) : ""),
      std::move(spec));
}

/// Proved and attained factors by the number of removed components.
Json set_chart(const Attribution& result) {
  Json bounds = Json::array(), attained = Json::array();
  const SubsetBound* last = nullptr;
  for (const SubsetBound& bound : result.bounds) {
    if (!std::isfinite(bound.most)) break;
    last = &bound;
    bounds.push_back(
        {{"removed", bound.removed}, {"least", rounded(bound.least)}, {"most", rounded(bound.most)}});
    for (const analysis::AttainedSet* const set : {&bound.attained_least, &bound.attained_most}) {
      attained.push_back({{"removed", bound.removed}, {"factor", rounded(set->value)}});
    }
  }
  if (last == nullptr) return {};
  const Json x = {{"field", "removed"}, {"type", "ordinal"}, {"title", "components removed, at most"}};
  const bool is_wide = last->most > 10.0 * last->least;
  const Json scale = {{"type", is_wide ? "log" : "linear"}, {"zero", false}};
  Json spec = {
      {"height", 220},
      {"layer",
       {{{"data", values(std::move(bounds))},
         {"mark", {{"type", "bar"}, {"opacity", 0.4}}},
         {"encoding",
          {{"x", x},
           {"y",
            {{"field", "least"},
             {"type", "quantitative"},
             {"scale", scale},
             {"title", "left of a logit / predicted"}}},
           {"y2", {{"field", "most"}}},
           {"tooltip",
            {{{"field", "removed"}, {"title", "removed"}},
             {{"field", "least"}, {"title", "at least"}, {"type", "quantitative"}, {"format", ".4~g"}},
             {{"field", "most"}, {"title", "at most"}, {"type", "quantitative"}, {"format", ".4~g"}}}}}}},
        {{"data", values(std::move(attained))},
         {"mark", {{"type", "point"}, {"filled", true}, {"color", "#e45756"}}},
         {"encoding",
          {{"x", x}, {"y", {{"field", "factor"}, {"type", "quantitative"}, {"scale", scale}}}}}}}}};
  return chart("attribution-sets", "How wrong can freezing be, whichever components are removed?",
               fmt::format("With at most {} removed, what is left of a logit is {} to {} times what freezing "
                           "predicts.",
                           last->removed, format_at_least(last->least), format_at_most(last->most)),
               "Bars are proved for every set of components and every logit; points are attained by a set.",
               std::move(spec));
}

/// What each component's share can be in any context, and what it is here.
Json range_chart(const Attribution& result) {
  Json ranges = Json::array(), shares = Json::array();
  std::vector<const ComponentEffect*> bounded;
  for (const ComponentEffect& component : result.components) {
    if (component.anywhere) bounded.push_back(&component);
  }
  if (bounded.empty()) return {};
  std::stable_sort(bounded.begin(), bounded.end(), [](const ComponentEffect* a, const ComponentEffect* b) {
    return a->anywhere->interval.size() > b->anywhere->interval.size();
  });
  const std::size_t known = bounded.size();
  bounded.resize(std::min(known, most_components));
  for (const ComponentEffect* const component : bounded) {
    ranges.push_back({{"name", component->name},
                      {"least", rounded(component->anywhere->interval.lower)},
                      {"most", rounded(component->anywhere->interval.upper)}});
    shares.push_back({{"name", component->name}, {"share", rounded(component->share)}});
  }
  const Json y = {{"field", "name"},
                  {"type", "nominal"},
                  {"sort", nullptr},
                  {"title", "component"},
                  {"axis", {{"labelLimit", 170}}}};
  // Linear near 0 and logarithmic beyond, as those of MLPs are far wider than others.
  const Json scale = {{"type", "symlog"}, {"constant", 1}};
  const auto number = [](const char* field, const char* title) -> Json {
    return {{"field", field}, {"title", title}, {"type", "quantitative"}, {"format", ".4~g"}};
  };
  Json spec = {
      {"height", 16 * bounded.size()},
      {"layer",
       {{{"data", values(std::move(ranges))},
         {"mark", {{"type", "bar"}, {"opacity", 0.4}}},
         {"encoding",
          {{"y", y},
           {"x",
            {{"field", "least"},
             {"type", "quantitative"},
             {"scale", scale},
             {"title", "share of the logit"}}},
           {"x2", {{"field", "most"}}},
           {"tooltip",
            {{{"field", "name"}, {"title", "component"}},
             number("least", "at least"),
             number("most", "at most")}}}}},
        {{"data", values(std::move(shares))},
         {"mark", {{"type", "tick"}, {"thickness", 3}, {"opacity", 1}, {"color", "#e45756"}}},
         {"encoding",
          {{"y", y},
           {"x", {{"field", "share"}, {"type", "quantitative"}, {"scale", scale}}},
           {"tooltip", {{{"field", "name"}, {"title", "component"}}, number("share", "share here")}}}}}}}};
  return chart(
      "attribution-ranges", "How large can each share become, whatever the text?",
      fmt::format("Shares of {} are bounded, by {} at most.", counted(known, "component"),
                  format_at_most(bounded.front()->anywhere->interval.size())),
      fmt::format("Bars are proved for every context whose final norm divides by no less than here; the "
                  "red tick is the share in this text.{}",
                  bounded.size() < known ? fmt::format(" The {} widest are drawn.", bounded.size()) : ""),
      std::move(spec));
}

}  // namespace

Json attribution_charts(const Attribution& attributed, const std::vector<std::string>& names) {
  Json charts = Json::array();
  if (attributed.components.empty()) return charts;
  charts.push_back(component_chart(attributed));
  if (Json places = position_chart(attributed, names); !places.is_null()) charts.push_back(std::move(places));
  if (Json sets = set_chart(attributed); !sets.is_null()) charts.push_back(std::move(sets));
  if (Json ranges = range_chart(attributed); !ranges.is_null()) charts.push_back(std::move(ranges));
  return charts;
}

}  // namespace normscope::figures
