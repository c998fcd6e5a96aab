#include <normscope/results/figures/folds.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/results/figures/vega.hpp>

namespace normscope::figures {
namespace {

using Json = nlohmann::ordered_json;
using nets::Fold;
using nets::no_row;
using vega::ordinal;
using vega::values;

/// Number of points along the layers that a screen can show.
constexpr std::size_t most_points = 400;

/// Every layer, or groups of neighbouring layers such that at most `most_points` remain.
Json points(std::span<const Fold> folds) {
  const std::size_t together = std::max<std::size_t>(1, (folds.size() + most_points - 1) / most_points);
  Json rows = Json::array();
  for (std::size_t begin = 0; begin < folds.size(); begin += together) {
    const std::span<const Fold> part = folds.subspan(begin, std::min(together, folds.size() - begin));
    std::vector<double> gaps;
    for (const Fold& fold : part) {
      // There is no gap if no other class lies on the opposite side, and in a layer without a pair.
      if (std::isfinite(fold.gap) && fold.gap > 0.0) gaps.push_back(fold.gap);
    }
    Json row = {{"layer", begin + part.size()}, {"runs", part.back().runs}};
    if (!gaps.empty()) {
      std::sort(gaps.begin(), gaps.end());
      row["least"] = gaps.front();
      row["median"] = gaps[gaps.size() / 2];
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json gap_line(const char* field, double width) {
  Json y = vega::logarithmic(field, "gap");
  y["axis"] = {{"format", ".0e"}, {"tickCount", 8}, {"grid", false}};
  return {{"transform", {{{"filter", std::string("isValid(datum.") + field + ")"}}}},
          {"mark", {{"type", "line"}, {"strokeWidth", width}}},
          {"encoding",
           {{"x", ordinal("layer", "layer")},
            {"y", std::move(y)},
            {"color", {{"datum", field}, {"type", "nominal"}, {"title", nullptr}}}}}};
}

}  // namespace

Json folds(std::span<const Fold> folds) {
  Json breaks = Json::array();
  for (std::size_t l = 0; l < folds.size(); ++l) {
    if (folds[l].first == no_row) breaks.push_back({{"layer", l + 1}});
  }
  // Without breaks, rules are left out, since an axis without data has no extent.
  const bool broken = !breaks.empty();
  const Json rules = {{"data", values(std::move(breaks))},
                      {"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"color", "firebrick"}}},
                      {"encoding", {{"x", ordinal("layer", "layer")}}}};
  const Json runs = {{"mark", {{"type", "line"}, {"strokeWidth", 1.5}}},
                     {"encoding", {{"x", ordinal("layer", "layer")}, {"y", ordinal("runs", "runs left")}}}};
  const auto with_rules = [&](Json layers) {
    if (broken) layers.push_back(rules);
    return layers;
  };
  Json shown = points(folds);
  Json panels = Json::array();
  // Paper mode does not compute gaps.
  if (std::any_of(shown.begin(), shown.end(), [](const Json& row) { return row.contains("least"); })) {
    panels.push_back({{"width", 560},
                      {"height", 180},
                      {"layer", with_rules({gap_line("median", 1.5), gap_line("least", 0.7)})}});
  }
  panels.push_back({{"width", 560}, {"height", 180}, {"layer", with_rules(Json::array({runs}))}});
  return vega::specification({{"description",
                               "How near two classes came in each fold, in units of half the pair's "
                               "distance, and the runs left; "
                               "dashed where a layer folds nothing."},
                              {"data", values(std::move(shown))},
                              {"vconcat", std::move(panels)}});
}

}  // namespace normscope::figures
