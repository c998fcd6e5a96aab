#include <normscope/results/documents.hpp>

#include <normscope/core/version.hpp>

#include "head.hpp"

namespace normscope::results {
namespace {

using Json = nlohmann::ordered_json;
using heads::HeadReach;

Json bounds(const heads::Spread& spread) { return {spread.lower, spread.upper}; }

Json name(const std::string& norm) { return norm.empty() ? Json(nullptr) : Json(norm); }

Json selector(const std::optional<models::Linear>& linear) {
  return linear ? Json(linear->weight.selector()) : Json(nullptr);
}

Json rotation(const std::optional<models::Rotary>& rotary) {
  if (!rotary) return nullptr;
  return {{"dims", rotary->dims},
          {"interleaved", rotary->interleaved},
          {"score_factor", rotary->score_factor},
          {"frequencies_known", !rotary->frequencies.empty()},
          {"context", rotary->context == 0 ? Json(nullptr) : Json(rotary->context)}};
}

Json both(const heads::Spread& uniform, const heads::Spread& sharpest) {
  return {{"uniform_bounds", bounds(uniform)}, {"sharp_bounds", bounds(sharpest)}};
}

Json over_distances(const heads::OverDistances& over) {
  Json at_zero = both(over.uniform_at_zero, over.sharpest_at_zero);
  if (over.uniform_at_zero_without_projection) {
    at_zero["without_projection"] =
        both(*over.uniform_at_zero_without_projection, *over.sharpest_at_zero_without_projection);
  }
  Json curve = Json::array();
  for (const heads::OverDistances::At& at : over.curve) curve.push_back({at.distance, at.spread});
  return {{"within", over.within == 0 ? Json(nullptr) : Json(over.within)},
          {"enumerated", over.enumerated},
          {"sharp_at_most_anywhere", over.sharpest_anywhere},
          {"uniform_at_most_anywhere", over.uniform_anywhere},
          {"at_distance_zero", at_zero},
          {"curve", curve}};
}

void add_queries(const heads::Attention& attention, Json& json) {
  json["uniform_query"] = attention.most_uniform.query;
  json["uniform_row"] = attention.most_uniform.row;
  json["sharp_query"] = attention.sharpest.query;
  json["sharp_row"] = attention.sharpest.row;
  if (!attention.sharpest_keys) return;
  const heads::KeyPair& keys = *attention.sharpest_keys;
  json["sharp_keys"] = {{"high_row", keys.high_row}, {"low_row", keys.low_row}};
  if (!attention.distances) return;
  json["sharp_keys"]["high_distance"] = keys.high_distance;
  json["sharp_keys"]["low_distance"] = keys.low_distance;
}

Json points(const heads::KeyPair& keys, bool turning) {
  Json json = {{"high", keys.high_point}, {"low", keys.low_point}};
  if (!turning) return json;
  json["high_distance"] = keys.high_distance;
  json["low_distance"] = keys.low_distance;
  return json;
}

Json weights(const heads::WeightProof& proof) {
  return {{"distances", proof.distances == 0 ? Json(nullptr) : Json(proof.distances)},
          {"weights", proof.weights},
          {"turns", proof.turns},
          {"still", proof.still},
          {"factor", proof.factor},
          {"query_multiplier", proof.query_multiplier},
          {"key_multiplier", proof.key_multiplier},
          {"spread", proof.spread}};
}

Json unavoidable(const std::vector<heads::UnavoidableContext>& contexts, bool turning) {
  Json json = Json::array();
  for (const heads::UnavoidableContext& context : contexts) {
    Json item = points(context.keys, turning);
    item["share"] = context.share;
    json.push_back(item);
  }
  return json;
}

/// Bounds for two keys at equal distance 0.
Json equal_distance(const heads::Spread& uniform, const std::vector<heads::UnavoidableContext>& proof,
                    const heads::Spread& sharpest) {
  return {{"uniform", {{"query", uniform.point}, {"unavoidable", unavoidable(proof, false)}}},
          {"sharp", {{"query", sharpest.point}, {"multiplier", sharpest.multiplier}}}};
}

Json without_projection(const heads::Attention& attention) {
  const bool turning = attention.distances.has_value();
  const auto& uniform = turning ? attention.distances->uniform_at_zero_without_projection
                                : attention.uniform_without_projection;
  const auto& sharpest = turning ? attention.distances->sharpest_at_zero_without_projection
                                 : attention.sharpest_without_projection;
  Json json = equal_distance(*uniform, attention.uniform_without_projection_proof, *sharpest);
  const heads::Fills& fills = attention.fills_without_projection;
  if (fills.queries == 1.0 && fills.keys == 1.0) return json;
  json["queries_fill"] = fills.queries;
  json["keys_fill"] = fills.keys;
  json["queries_radius"] = fills.queries_radius;
  json["keys_radius"] = fills.keys_radius;
  return json;
}

bool has_without_projection(const heads::Attention& attention) {
  return attention.uniform_without_projection ||
         (attention.distances && attention.distances->uniform_at_zero_without_projection);
}

/// The certificates of the bounds, before a soft cap.
Json certificates(const models::Head& head, const HeadReach& reach) {
  const heads::Attention& attention = *reach.attention;
  const bool turning = attention.distances.has_value();
  Json uniform = {{"query", attention.most_uniform.point},
                  {"unavoidable", unavoidable(attention.uniform_proof, turning)}};
  Json sharp = {{"query", attention.sharpest.point}, {"keys", nullptr}};
  if (attention.sharpest_keys) sharp["keys"] = points(*attention.sharpest_keys, turning);
  if (!turning) {
    sharp["multiplier"] = attention.sharpest.multiplier;
  } else {
    const heads::OverDistances& over = *attention.distances;
    uniform["anywhere"] = nullptr;
    if (!over.anywhere_point.empty()) {
      uniform["anywhere"] = {{"query", over.anywhere_point}, {"proof", weights(over.anywhere_proof)}};
    }
    sharp["everywhere"] = weights(over.everywhere);
    sharp["in_context"] = over.in_context ? weights(*over.in_context) : Json(nullptr);
    sharp["by_distance"] = nullptr;
    if (over.by_distance) {
      const heads::DistanceProof& proof = *over.by_distance;
      sharp["by_distance"] = {{"distances", proof.distances},   {"query_square", proof.query_square},
                              {"key_square", proof.key_square}, {"reach", proof.reach},
                              {"centre", proof.centre},         {"spread", proof.spread}};
    }
  }
  const auto own = [](const std::string& norm, NormKind kind, double eps) -> Json {
    if (norm.empty()) return nullptr;
    return {{"kind", to_string(kind)}, {"eps", eps}};
  };
  Json json = {{"norm", {{"kind", to_string(reach.norm_kind)}}},
               {"query_norm", own(reach.query_norm, reach.query_norm_kind, reach.query_norm_eps)},
               {"key_norm", own(reach.key_norm, reach.key_norm_kind, reach.key_norm_eps)},
               {"uniform", uniform},
               {"sharp", sharp}};
  if (head.rotary && turning) json["frequencies"] = head.rotary->frequencies;
  if (turning) {
    const heads::OverDistances& over = *attention.distances;
    json["at_distance_zero"] =
        equal_distance(over.uniform_at_zero, over.uniform_at_zero_proof, over.sharpest_at_zero);
  }
  if (has_without_projection(attention)) json["without_projection"] = without_projection(attention);
  if (attention.queries_fill != 1.0 || attention.keys_fill != 1.0) {
    json["queries_radius"] = attention.queries_radius;
    json["keys_radius"] = attention.keys_radius;
  }
  return json;
}

}  // namespace

Json head_json(const models::Head& head, const HeadReach& reach, const HeadDetails& details) {
  Json json = {{"stack", head.stack},
               {"layer", head.layer},
               {"head", head.head},
               {"pass", name(reach.pass)},
               {"key_value_head", head.key_value_head},
               {"head_dim", head.head_dim},
               {"scale", head.scale},
               {"norm", reach.norm},
               {"query", selector(head.query)},
               {"key", selector(head.key)},
               {"value", selector(head.value)},
               {"rotary", head.rotary.has_value()},
               {"rotation", rotation(head.rotary)},
               {"soft_cap", head.soft_cap > 0.0 ? Json(head.soft_cap) : Json(nullptr)},
               {"window", head.window ? Json(*head.window) : Json(nullptr)},
               {"uniform_spread", nullptr},
               {"sharp_spread", nullptr}};
  if (head.between && reach.norm == head.norm) json["between"] = selector(head.between);
  if (!reach.attention) {
    json["refused"] = reach.refused;
    return json;
  }
  const heads::Attention& attention = *reach.attention;
  if (attention.narrow()) {
    json["uniform_spread"] = attention.most_uniform.upper;
    json["sharp_spread"] = attention.sharpest.lower;
  }
  json["uniform_bounds"] = bounds(attention.most_uniform);
  json["sharp_bounds"] = bounds(attention.sharpest);
  if (attention.distances) json["distances"] = over_distances(*attention.distances);
  if (attention.uniform_without_projection) {
    json["without_projection"] =
        both(*attention.uniform_without_projection, *attention.sharpest_without_projection);
  }
  json["uniform_without_scaling"] = attention.uniform_without_scaling;
  if (!reach.query_norm.empty() || !reach.key_norm.empty()) {
    json["own_norms"] = {{"query", name(reach.query_norm)},
                         {"key", name(reach.key_norm)},
                         {"queries_fill", attention.queries_fill},
                         {"keys_fill", attention.keys_fill}};
  }
  if (details.queries) {
    add_queries(attention, json);
    if (!attention.distances) json["sharp_multiplier"] = attention.sharpest.multiplier;
  }
  if (details.certificates) json["certificates"] = certificates(head, reach);
  return json;
}

Json heads(const files::Checkpoint& checkpoint, const models::Model& model,
           const std::vector<HeadReach>& bounded, const HeadDetails& details) {
  Json json = {
      {"schema", "normscope.heads/1"},      {"version", version},   {"path", checkpoint.path().string()},
      {"architecture", model.architecture}, {"notes", model.notes}, {"heads", Json::array()}};
  if (!details.inputs.is_null()) json["inputs"] = details.inputs;
  for (const HeadReach& reach : bounded) {
    json["heads"].push_back(head_json(model.heads[reach.head], reach, details));
  }
  return json;
}

}  // namespace normscope::results
