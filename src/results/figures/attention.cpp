#include <normscope/results/figures/attention.hpp>

#include <utility>

#include <nlohmann/json.hpp>

#include <normscope/core/assert.hpp>
#include <normscope/results/figures/vega.hpp>

namespace normscope::figures {

using Json = nlohmann::ordered_json;

Json attention_bars(std::span<const double> weights, const selectability::Selection& selection) {
  NORMSCOPE_ASSERT(weights.size() == selection.keys.size());
  Json rows = Json::array();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    rows.push_back(
        {{"key", i}, {"weight", weights[i]}, {"answer", selectability::to_string(selection.keys[i].answer)}});
  }
  const Json colour = {{"field", "answer"},
                       {"type", "nominal"},
                       {"legend", nullptr},
                       {"scale", {{"domain", {"selectable", "unselectable", "undecided"}}}}};
  const Json x = {{"field", "key"},
                  {"type", "ordinal"},
                  {"title", "key"},
                  {"axis", {{"labelAngle", 0}, {"labelOverlap", true}, {"ticks", false}}}};
  const Json y = {{"field", "weight"},
                  {"type", "quantitative"},
                  {"title", "attention"},
                  {"scale", {{"domain", {0, 1}}}},
                  {"axis", {{"format", ".0%"}, {"tickCount", 5}}}};
  const Json tips = {{{"field", "key"}}, {{"field", "weight"}, {"format", ".3f"}}, {{"field", "answer"}}};
  return vega::specification({{"description", "Attention weight of each key."},
                              {"width", "container"},
                              {"height", 150},
                              {"data", {{"name", "weights"}, {"values", std::move(rows)}}},
                              {"mark", "bar"},
                              {"encoding", {{"x", x}, {"y", y}, {"color", colour}, {"tooltip", tips}}}});
}

}  // namespace normscope::figures
