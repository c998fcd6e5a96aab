#include <normscope/results/documents.hpp>

#include <algorithm>

#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>

#include "finite.hpp"

namespace normscope::results {
namespace {

using Json = nlohmann::ordered_json;
using selectability::Selectability;

Json token_json(std::size_t token, const std::vector<std::string>& names) {
  const bool named = token < names.size() && !names[token].empty();
  return {{"token", token}, {"name", named ? Json(names[token]) : Json()}};
}

Json traced_norm_json(const models::Norm& norm, const analysis::TracedNorm& traced) {
  Json axes = Json::array();
  for (const analysis::TracedAxis& axis : traced.axes) {
    axes.push_back({{"length", axis.length}, {"coordinate", axis.coordinate}, {"weight", axis.weight}});
  }
  Json tokens = Json::array();
  for (const analysis::TokenAtNorm& token : traced.tokens) {
    tokens.push_back({{"length", finite_json(token.length)},
                      {"ones_share", finite_json(token.ones_share)},
                      {"sigma", finite_json(token.sigma)},
                      {"radius", finite_json(token.radius)},
                      {"place", Json::array()}});
    for (const double along : token.place) tokens.back()["place"].push_back(finite_json(along));
  }
  return {{"name", norm.name},
          {"role", norm.role},
          {"layer", norm.layer ? Json(*norm.layer) : Json()},
          {"kind", std::string(to_string(norm.kind))},
          {"centers", traced.observer.spec().centers()},
          {"width", norm.width},
          {"eps", norm.eps},
          {"axes", std::move(axes)},
          {"tokens", std::move(tokens)}};
}

Json traced_head_json(const models::Head& head, const analysis::ContextKeys& keys) {
  Json json = {{"layer", head.layer},    {"head", head.head},           {"key", head.key_value_head},
               {"norm", keys.norm},      {"selectable", Json::array()}, {"undecided", Json::array()},
               {"refused", keys.refused}};
  for (std::size_t t = 0; t < keys.first_context.size(); ++t) {
    if (keys.first_context[t] == Selectability::selectable) json["selectable"].push_back(t);
    if (keys.first_context[t] == Selectability::undecided) json["undecided"].push_back(t);
  }
  return json;
}

/// Whether some input of the final norm gives the token the largest logit: "yes", "no" or "undecided"; null
/// where that was not decided.
Json reach_json(const analysis::TokenTrace& trace, std::size_t token) {
  if (!trace.within.next) return {};
  const auto& tokens = trace.within.next->tokens;
  const auto at = std::find_if(tokens.begin(), tokens.end(),
                               [&](const analysis::NextToken& next) { return next.token == token; });
  return at == tokens.end() ? Json() : Json(std::string(to_string(at->answer)));
}

Json continuation_json(const forward::Continuation& next, const std::vector<std::string>& names) {
  Json json = token_json(next.token, names);
  json["logit"] = finite_json(next.logit);
  json["probability"] = finite_json(next.probability);
  return json;
}

Json prediction_json(const analysis::TokenTrace& trace, const forward::Prediction& prediction,
                     const std::vector<std::string>& names) {
  Json likeliest = Json::array();
  for (const forward::Continuation& next : prediction.likeliest) {
    likeliest.push_back(continuation_json(next, names));
    likeliest.back()["reach"] = reach_json(trace, next.token);
  }
  Json next;
  if (prediction.next) {
    next = continuation_json(*prediction.next, names);
    next["rank"] = prediction.rank;
  }
  return {{"likeliest", std::move(likeliest)}, {"next", std::move(next)}};
}

}  // namespace

Json token_trace(const files::Checkpoint& checkpoint, const analysis::TokenTrace& trace,
                 const std::vector<std::string>& names) {
  const models::Model& model = *trace.model;
  Json document = {{"schema", "normscope.token-trace/1"},
                   {"version", version},
                   {"path", checkpoint.path().string()},
                   {"architecture", model.title},
                   {"tokens", Json::array()},
                   {"norms", Json::array()},
                   {"heads", Json::array()},
                   {"key_positions", trace.key_positions},
                   {"predictions", Json::array()},
                   {"final_norm", trace.within.final_norm},
                   {"reach_refused", trace.within.next_refused},
                   {"notes", model.notes}};
  for (const std::size_t token : trace.tokens) document["tokens"].push_back(token_json(token, names));
  for (const analysis::TracedNorm& norm : trace.norms) {
    document["norms"].push_back(traced_norm_json(model.norms[norm.norm], norm));
  }
  for (const analysis::ContextKeys& keys : trace.within.heads) {
    document["heads"].push_back(traced_head_json(model.heads[keys.head], keys));
  }
  for (const forward::Prediction& prediction : trace.predictions) {
    document["predictions"].push_back(prediction_json(trace, prediction, names));
  }
  return document;
}

}  // namespace normscope::results
