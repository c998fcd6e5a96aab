#include <normscope/results/figures/random_table.hpp>

#include <cmath>

#include <nlohmann/json.hpp>

#include <normscope/results/figures/vega.hpp>

namespace normscope::figures {
namespace {

using Json = nlohmann::ordered_json;
using selectability::RandomCell;
using selectability::RandomTable;

/// Digits of a share that can be distinguished by colour.
constexpr double share_digits = 1e4;

Json axis(const char* field, const char* title, const Json& extra) {
  Json result = {{"field", field}, {"type", "ordinal"}, {"title", title}};
  result.update(extra);
  return result;
}

Json whole_numbers(std::size_t least, std::size_t most) {
  Json result = Json::array();
  for (std::size_t value = least; value <= most; ++value) result.push_back(value);
  return result;
}

Json table_specification(const std::vector<RandomCell>& cells, double RandomCell::*share,
                         std::string_view title) {
  Json values = Json::array();
  for (const RandomCell& cell : cells) {
    values.push_back({{"width", cell.width},
                      {"count", cell.count},
                      {"share", std::round(cell.*share * share_digits) / share_digits}});
  }
  const Json tips = {{{"field", "width"}, {"title", "width"}},
                     {{"field", "count"}, {"title", "keys"}},
                     {{"field", "share"}, {"title", "share"}, {"format", ".3f"}}};
  Json colour = vega::quantity("share", "share");
  colour["scale"] = {{"domain", {0, 1}}, {"scheme", "blues"}};
  // Every fifth count gets a label; sixty labels do not fit.
  const Json every_fifth = {
      {"axis", {{"labelExpr", "datum.value % 5 == 0 ? datum.label : ''"}, {"ticks", false}}}};
  const Json encoding = {{"x", axis("width", "width of the keys",
                                    {{"axis", {{"labelAngle", 0}, {"orient", "top"}, {"ticks", false}}}})},
                         {"y", axis("count", "number of keys", every_fifth)},
                         {"color", colour},
                         {"tooltip", tips}};
  return vega::specification({{"title", {{"text", std::string(title)}, {"anchor", "start"}}},
                              {"width", 340},
                              {"height", 520},
                              {"data", vega::values(std::move(values))},
                              {"mark", {{"type", "rect"}}},
                              {"encoding", encoding}});
}

}  // namespace

Json random_table(const std::vector<RandomCell>& cells, double RandomCell::*share, std::string_view title) {
  return table_specification(cells, share, title);
}

Json random_table(const RandomTable& table, const std::vector<RandomCell>& cells, double RandomCell::*share,
                  std::string_view title) {
  Json result = table_specification(cells, share, title);
  result["data"]["name"] = "cells";
  result["width"] = 300;
  Json& encoding = result["encoding"];
  // The embedding page sets the colours.
  encoding["color"]["scale"].erase("scheme");
  encoding["x"]["scale"] = {{"domain", whole_numbers(table.least_width, table.most_width)}};
  encoding["y"]["scale"] = {{"domain", whole_numbers(table.least_count, table.most_count)}};
  return result;
}

}  // namespace normscope::figures
