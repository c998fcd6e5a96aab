#include <normscope/results/figures/curvature.hpp>

#include <cmath>

#include <nlohmann/json.hpp>

#include <normscope/results/figures/vega.hpp>

namespace normscope::figures {
namespace {

using Json = nlohmann::ordered_json;

Json on_log_axis(const char* field, const char* title, int base) {
  Json result = vega::quantity(field, title);
  result["scale"] = {{"type", "log"}, {"base", base}};
  return result;
}

}  // namespace

Json group_curvature(std::span<const norm::GroupCurvature> results) {
  Json rows = Json::array();
  const auto add = [&](std::size_t groups, const char* what, double ratio) {
    if (std::isfinite(ratio) && ratio > 0.0) {
      rows.push_back({{"groups", groups}, {"what", what}, {"ratio", ratio}});
    }
  };
  for (const norm::GroupCurvature& result : results) {
    add(result.groups, "mean of the rows", result.ratio);
    add(result.groups, "least of the rows", result.least);
    if (result.bound) add(result.groups, "proved for every row", *result.bound);
  }
  Json x = on_log_axis("groups", "groups", 2);
  x["axis"] = {{"format", "d"}, {"tickCount", 8}};
  Json y = on_log_axis("ratio", "curvature over that of one group", 10);
  y["axis"] = {{"format", "~s"}, {"tickCount", 6}};
  const Json names = {"mean of the rows", "least of the rows", "proved for every row"};
  const Json encoding = {
      {"x", std::move(x)},
      {"y", std::move(y)},
      {"color", {{"field", "what"}, {"type", "nominal"}, {"title", nullptr}, {"scale", {{"domain", names}}}}},
      {"strokeDash",
       {{"field", "what"},
        {"type", "nominal"},
        {"title", nullptr},
        {"scale", {{"domain", names}, {"range", {{1, 0}, {1, 0}, {5, 3}}}}}}},
      {"tooltip",
       {{{"field", "what"}, {"title", " "}},
        {{"field", "groups"}},
        {{"field", "ratio"}, {"format", ".4~g"}}}}};
  return vega::specification({{"description", "How a norm's curvature grows with the number of its groups."},
                              {"width", 560},
                              {"height", 260},
                              {"data", vega::values(std::move(rows))},
                              {"mark", {{"type", "line"}, {"point", true}}},
                              {"encoding", encoding}});
}

}  // namespace normscope::figures
