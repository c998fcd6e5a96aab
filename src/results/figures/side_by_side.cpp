#include <normscope/results/figures/side_by_side.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

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
                                number(before.norms[furthest].image->condition),
                                number(after.norms[furthest].image->condition));
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

}  // namespace normscope::figures
