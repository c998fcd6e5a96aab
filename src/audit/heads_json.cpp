#include "heads_json.hpp"

#include <normscope/core/version.hpp>
#include <normscope/json/text.hpp>

namespace normscope::audit {
namespace {

using Json = nlohmann::ordered_json;

Json bounds(const selectability::Spread& spread) { return {spread.lower, spread.upper}; }

Json name(const std::string& norm) { return norm.empty() ? Json(nullptr) : Json(norm); }

Json selector(const std::optional<model::Linear>& linear) {
  return linear ? Json(linear->weight.selector()) : Json(nullptr);
}

}  // namespace

Json head_json(const model::Head& head, const HeadReach& reach, bool queries) {
  Json json = {{"layer", head.layer},
               {"head", head.head},
               {"key_value_head", head.key_value_head},
               {"head_dim", head.head_dim},
               {"scale", head.scale},
               {"norm", head.norm},
               {"query", selector(head.query)},
               {"key", selector(head.key)},
               {"value", selector(head.value)},
               {"rotary", head.rotary.has_value()},
               {"uniform_spread", nullptr},
               {"sharp_spread", nullptr}};
  if (!reach.attention) {
    json["refused"] = reach.refused;
    return json;
  }
  const selectability::Attention& attention = *reach.attention;
  if (attention.narrow()) {
    json["uniform_spread"] = attention.most_uniform.upper;
    json["sharp_spread"] = attention.sharpest.lower;
  }
  json["uniform_bounds"] = bounds(attention.most_uniform);
  json["sharp_bounds"] = bounds(attention.sharpest);
  if (attention.uniform_without_projection) {
    json["without_projection"] = {{"uniform_bounds", bounds(*attention.uniform_without_projection)},
                                  {"sharp_bounds", bounds(*attention.sharpest_without_projection)}};
  }
  json["uniform_without_scaling"] = attention.uniform_without_scaling;
  if (!reach.query_norm.empty() || !reach.key_norm.empty()) {
    json["own_norms"] = {{"query", name(reach.query_norm)},
                         {"key", name(reach.key_norm)},
                         {"queries_fill", attention.queries_fill},
                         {"keys_fill", attention.keys_fill}};
  }
  if (queries) {
    json["uniform_query"] = attention.most_uniform.query;
    json["uniform_row"] = attention.most_uniform.row;
    json["sharp_query"] = attention.sharpest.query;
    json["sharp_row"] = attention.sharpest.row;
    json["sharp_multiplier"] = attention.sharpest.multiplier;
  }
  return json;
}

std::string heads_json(const checkpoint::Checkpoint& checkpoint, const model::Model& model,
                       const std::vector<HeadReach>& heads, bool queries) {
  Json json = {
      {"schema", "normscope.heads/1"},      {"version", version},   {"path", checkpoint.path().string()},
      {"architecture", model.architecture}, {"notes", model.notes}, {"heads", Json::array()}};
  for (std::size_t i = 0; i < heads.size(); ++i) {
    json["heads"].push_back(head_json(model.heads[i], heads[i], queries));
  }
  return json_text(json, 1);
}

}  // namespace normscope::audit
