#include <normscope/results/figures.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/analysis/report.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>

#include "chart_parts.hpp"

namespace normscope::figures {
namespace {

/// Points that draw one curve.
constexpr std::size_t ranks_drawn = 256;
/// Bins of a histogram.
constexpr std::size_t bin_count = 40;

Json line_and_points() {
  return {{{"mark", {{"type", "line"}, {"opacity", 0.4}, {"strokeWidth", 1}}}},
          {{"mark", {{"type", "point"}, {"filled", true}, {"size", 25}, {"opacity", 1}}}}};
}

Json number_tip(const char* field, const char* title) {
  return {{"field", field}, {"title", title}, {"type", "quantitative"}, {"format", ".4~g"}};
}

Json one(Json figure) {
  Json charts = Json::array();
  charts.push_back(std::move(figure));
  return charts;
}

}  // namespace

Json image_charts(std::span<const double> semi_axes, double median) {
  if (semi_axes.empty()) return Json::array();
  const Json table = spectrum_rows(semi_axes, median, ranks_drawn);
  return one(chart(
      "semi-axes", "What shape is the norm's image?",
      fmt::format(
          "An ellipsoid with {} semi-axes from {} to {}, longest first: flat is a sphere, a cliff at the "
          "left is a few outlier axes.",
          semi_axes.size(), format_number(semi_axes.back()), format_number(semi_axes.front())),
      fmt::format("Semi-axes by rank, from {} to {}.", format_number(semi_axes.back()),
                  format_number(semi_axes.front())),
      {{"data", values(table)},
       {"height", 240},
       {"encoding",
        {{"x", rank_axis("rank of the axis")},
         {"y", ratio_axis(table, "length", "semi-axis")},
         {"tooltip", {number_tip("rank", "rank"), number_tip("length", "semi-axis")}}}},
       {"layer", line_and_points()}}));
}

Json selection_charts(const selectability::Selection& selection) {
  using selectability::Selectability;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < selection.keys.size(); ++i) {
    const selectability::Verdict& key = selection.keys[i];
    // A logarithmic axis has no zero.
    if (key.answer == Selectability::selectable && key.margin > 0.0 && std::isfinite(key.margin)) {
      order.push_back(i);
    }
  }
  if (order.empty()) return Json::array();
  const auto margin = [&](std::size_t i) { return selection.keys[i].margin; };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return margin(a) > margin(b); });
  Json table = Json::array();
  for (const std::size_t rank : analysis::thinned_ranks(order.size(), ranks_drawn)) {
    const std::size_t key = order[rank - 1];
    table.push_back({{"rank", rank}, {"key", key}, {"margin", rounded(margin(key))}});
  }
  return one(chart(
      "margins", "How clearly can each key be selected?",
      fmt::format("{} of {} can be selected by some query, {} cannot by any, {} undecided. The margin is the "
                  "key's distance from the hull of the others along its query.",
                  selection.count(Selectability::selectable), counted(selection.keys.size(), "key"),
                  selection.count(Selectability::unselectable), selection.count(Selectability::undecided)),
      fmt::format("Margins of {} by rank, from {} to {}.", counted(order.size(), "key"),
                  format_at_least(margin(order.back())), format_at_least(margin(order.front()))),
      {{"data", values(table)},
       {"height", 240},
       {"encoding",
        {{"x", ordinal("rank", "selectable keys, the clearest first")},
         {"y", ratio_axis(table, "margin", "margin")},
         {"tooltip", {{{"field", "key"}, {"title", "key"}}, number_tip("margin", "margin")}}}},
       {"layer", line_and_points()}}));
}

Json reach_charts(const selectability::Survey& survey) {
  using proof::Answer;
  const auto lead = [&](std::size_t token) {
    const selectability::TokenReach& found = survey.tokens[token];
    return found.answer == Answer::yes ? found.lower : found.upper;
  };
  std::vector<std::size_t> order;
  for (std::size_t token = 0; token < survey.tokens.size(); ++token) {
    if (survey.tokens[token].done && std::isfinite(lead(token))) order.push_back(token);
  }
  if (order.empty()) return Json::array();
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lead(a) < lead(b); });
  Json table = Json::array();
  for (const std::size_t rank : analysis::thinned_ranks(order.size(), ranks_drawn)) {
    const std::size_t token = order[rank - 1];
    const Answer answer = survey.tokens[token].answer;
    table.push_back({{"rank", rank},
                     {"token", token},
                     {"lead", rounded(lead(token))},
                     {"answer", answer == Answer::yes  ? "reachable"
                                : answer == Answer::no ? "never the largest"
                                                       : "undecided"}});
  }
  const Json colour = {{"field", "answer"}, {"type", "nominal"}, {"title", nullptr}};
  const Json x = rank_axis("tokens, the hardest to reach first");
  const Json y = quantity("lead", "lead of the logit");
  const Json tips = {{{"field", "token"}, {"title", "token"}},
                     number_tip("lead", "lead"),
                     {{"field", "answer"}, {"title", "answer"}}};
  const Json points = {{"data", values(table)},
                       {"mark", {{"type", "point"}, {"filled", true}, {"size", 25}, {"opacity", 1}}},
                       {"encoding", {{"x", x}, {"y", y}, {"color", colour}, {"tooltip", tips}}}};
  const Json zero = {{"data", values({{{"lead", 0.0}}})},
                     {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"opacity", 0.6}}},
                     {"encoding", {{"y", y}}}};
  return one(chart(
      "leads", "Which tokens can have the largest logit?",
      fmt::format(
          "{} of {} can, {} never, whatever the input. The lead is how far a token's logit is proved to "
          "exceed all others at some input; for a token that never leads, the largest lead there can be.",
          survey.with(Answer::yes).size(), counted(survey.tokens.size(), "token"),
          survey.with(Answer::no).size()),
      fmt::format("Leads of {} by rank, from {} to {}.", counted(order.size(), "token"),
                  format_number(lead(order.front())), format_number(lead(order.back()))),
      {{"height", 240}, {"layer", {zero, points}}}));
}

Json separation_charts(std::span<const double> along, std::span<const std::size_t> class_of,
                       std::optional<double> boundary) {
  NORMSCOPE_ASSERT(along.size() == class_of.size());
  if (along.empty()) return Json::array();
  const auto [least, most] = std::minmax_element(along.begin(), along.end());
  // Where rows are of the order of the largest double, positions overflow.
  const double width = (*most - *least) / static_cast<double>(bin_count);
  if (!(std::isfinite(width) && width > 0.0)) return Json::array();
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> counts;
  for (std::size_t row = 0; row < along.size(); ++row) {
    const auto bin = static_cast<std::size_t>((along[row] - *least) / width);
    ++counts[{class_of[row], std::min(bin, bin_count - 1)}];
  }
  Json table = Json::array();
  for (const auto& [place, rows] : counts) {
    const double from = *least + static_cast<double>(place.second) * width;
    table.push_back({{"from", rounded(from)},
                     {"to", rounded(from + width)},
                     {"class", fmt::format("{}", place.first)},
                     {"rows", rows}});
  }
  Json rows = ordinal("rows", "rows");
  rows["stack"] = nullptr;
  const Json tips = {{{"field", "class"}, {"title", "class"}},
                     {{"field", "rows"}, {"title", "rows"}},
                     number_tip("from", "from"),
                     number_tip("to", "to")};
  Json x = quantity("from", "position along the direction");
  x["scale"] = {{"zero", false}};
  Json layers = {{{"data", values(std::move(table))},
                  {"mark", {{"type", "bar"}, {"opacity", 0.6}}},
                  {"encoding",
                   {{"x", x},
                    {"x2", {{"field", "to"}}},
                    {"y", rows},
                    {"y2", {{"datum", 0}}},
                    {"color", {{"field", "class"}, {"type", "nominal"}, {"title", "class"}}},
                    {"tooltip", tips}}}}};
  if (boundary && std::isfinite(*boundary)) {
    layers.push_back({{"data", values({{{"from", rounded(*boundary)}}})},
                      {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}}},
                      {"encoding", {{"x", x}}}});
  }
  return one(chart("along-direction", "How far apart are the classes?",
                   fmt::format("Rows by their position along the {}.",
                               boundary ? "normal of the hyperplane, which is dashed"
                                        : "direction that separates the classes best"),
                   fmt::format("Histogram of {} along a direction, from {} to {}.",
                               counted(along.size(), "row"), format_number(*least), format_number(*most)),
                   {{"height", 220}, {"layer", std::move(layers)}}));
}

}  // namespace normscope::figures
