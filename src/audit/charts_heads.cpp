#include <algorithm>
#include <cmath>

#include "chart_parts.hpp"
#include "finding_rules.hpp"
#include "text.hpp"

namespace normscope::audit {

void head_spreads(const Report& report, Json& charts) {
  Json table = Json::array();
  double least = INFINITY;
  double most = 0.0;
  for (std::size_t i = 0; i < report.heads.size(); ++i) {
    if (!report.heads[i].attention) continue;
    const selectability::Attention& attention = *report.heads[i].attention;
    const model::Head& head = report.model.heads[i];
    const auto add = [&](const char* what, double spread) {
      // A logarithmic axis has no place for what is nothing or as good as it.
      if (!(spread > 1e-6 * attention.sharpest.lower)) return;
      table.push_back(
          {{"layer", head.layer}, {"head", head.head}, {"what", what}, {"spread", rounded(spread)}});
    };
    add("sharpest query", attention.sharpest.lower);
    add("most uniform query", attention.most_uniform.lower);
    least = std::min(least, attention.sharpest.lower);
    most = std::max(most, attention.sharpest.lower);
  }
  if (table.empty()) return;
  const Json rule = {
      {"data",
       values({{{"spread", rounded(singling_out)}, {"label", "half of the attention on one of 1024 keys"}}})},
      {"encoding", {{"y", {{"field", "spread"}, {"type", "quantitative"}}}}},
      {"layer",
       {{{"mark", {{"type", "rule"}, {"strokeDash", {4, 3}}, {"opacity", 0.6}}}},
        {{"mark",
          {{"type", "text"},
           {"align", "left"},
           {"baseline", "bottom"},
           {"x", 4},
           {"dy", -3},
           {"opacity", 0.8}}},
         {"encoding", {{"text", {{"field", "label"}}}}}}}}};
  const Json points = {{"data", values(table)},
                       {"mark", {{"type", "point"}, {"filled", true}, {"size", 40}, {"opacity", 0.75}}},
                       {"encoding",
                        {{"x",
                          {{"field", "layer"},
                           {"type", "ordinal"},
                           {"title", "layer"},
                           {"axis", {{"labelAngle", 0}, {"labelOverlap", true}}}}},
                         {"y", logarithmic("spread", "spread of scores, largest between two keys")},
                         {"color",
                          {{"field", "what"},
                           {"type", "nominal"},
                           {"title", nullptr},
                           {"scale", {{"domain", {"sharpest query", "most uniform query"}}}}}},
                         {"tooltip",
                          {{{"field", "layer"}},
                           {{"field", "head"}},
                           {{"field", "what"}, {"title", "query"}},
                           {{"field", "spread"}, {"type", "quantitative"}, {"format", ".4~g"}}}}}}};
  charts.push_back(
      chart("head-spread", "How uniform and how sharp can each head be?",
            fmt::format("Over every context, a head's sharpest query makes the scores of two keys differ by "
                        "{} to {}. Heads "
                        "without a point of the other colour can attend to all keys alike.",
                        number(least), number(most)),
            fmt::format("Spread of scores for {} heads by layer, from {} to {} at their sharpest.",
                        report.heads.size(), number(least), number(most)),
            {{"height", 240}, {"layer", {rule, points}}}));
}

}  // namespace normscope::audit
