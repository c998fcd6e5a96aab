#include <algorithm>

#include "chart_parts.hpp"
#include "finding_rules.hpp"
#include "text.hpp"

namespace normscope::audit {

void head_spreads(const Report& report, Json& charts) {
  Json table = Json::array();
  std::vector<double> sharpest;
  std::size_t never_uniform = 0;
  bool uniform = true;
  bool known = true;
  for (std::size_t i = 0; i < report.heads.size(); ++i) {
    if (!report.heads[i].attention) continue;
    const selectability::Attention& attention = *report.heads[i].attention;
    const model::Head& head = report.model.heads[i];
    const auto add = [&](const char* what, double spread) {
      // A logarithmic axis has no place for what is nothing, or as good as it.
      if (!(spread > 1e-6 * attention.sharpest.upper)) return false;
      table.push_back(
          {{"layer", head.layer}, {"head", head.head}, {"what", what}, {"spread", rounded(spread)}});
      return true;
    };
    const double most = attention.narrow() ? attention.sharpest.lower : attention.sharpest.upper;
    if (add("sharpest query", most)) sharpest.push_back(most);
    if (add("most uniform query", attention.most_uniform.lower)) ++never_uniform;
    uniform = uniform && (attention.narrow() || attention.most_uniform.upper <= 1e-6 * most);
    known = known && attention.narrow();
  }
  if (table.empty()) return;
  const Json label = {
      {{"spread", rounded(singling_out)}, {"label", "half of the attention on one of 1024 keys"}}};
  const Json words = {{"type", "text"}, {"align", "left"}, {"baseline", "bottom"},
                      {"x", 4},         {"dy", -3},        {"opacity", 0.8}};
  const Json rule = {{"data", values(label)},
                     {"encoding", {{"y", quantity("spread", "")}}},
                     {"layer",
                      {{{"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"opacity", 0.6}}}},
                       {{"mark", words}, {"encoding", {{"text", {{"field", "label"}}}}}}}}};
  const Json layer_axis = {{"field", "layer"},
                           {"type", "ordinal"},
                           {"title", "layer"},
                           {"axis", {{"labelAngle", 0}, {"labelOverlap", true}}}};
  const Json tips = {{{"field", "layer"}},
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
  const std::string alike = never_uniform > 0
                                ? counted(never_uniform, "head") + " cannot attend to all keys alike."
                            : uniform ? "Every head can attend to all keys alike."
                                      : "No head is known not to attend to all keys alike.";
  charts.push_back(chart(
      "head-spread", "How uniform and how sharp can each head be?",
      fmt::format(
          "Over every context, a head's sharpest query makes the scores of two keys differ by {}{} to {}. {}",
          known ? "" : "at most ", number(*least), number(*most), alike),
      fmt::format("Spread of scores for {} by layer, from {} to {} at their sharpest.",
                  counted(sharpest.size(), "head"), number(*least), number(*most)),
      {{"height", 240}, {"layer", {rule, points}}}));
}

}  // namespace normscope::audit
