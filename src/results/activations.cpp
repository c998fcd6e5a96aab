#include <normscope/results/documents.hpp>

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>

#include "finite.hpp"

namespace normscope::results {
namespace {

using Json = nlohmann::ordered_json;
using normscope::analysis::AxisUse;
using normscope::analysis::Feature;
using normscope::analysis::InModel;
using normscope::analysis::ObservedNorm;
using normscope::analysis::Spread;
using normscope::analysis::Summary;

Json spread_json(const Spread& spread) {
  return {{"least", spread.least},        {"low", spread.low},   {"median", spread.median},
          {"high", spread.high},          {"most", spread.most}, {"mean", spread.mean},
          {"deviation", spread.deviation}};
}

Json features_json(const std::vector<Feature>& features) {
  Json list = Json::array();
  for (const Feature& feature : features) {
    list.push_back({{"coordinate", feature.coordinate},
                    {"rms", feature.rms},
                    {"share", feature.share},
                    {"largest", feature.largest},
                    {"row", feature.row}});
  }
  return list;
}

Json axes_json(const std::vector<AxisUse>& axes) {
  Json list = Json::array();
  for (const AxisUse& axis : axes) {
    list.push_back({{"rank", axis.rank + 1},
                    {"length", axis.length},
                    {"available", axis.available},
                    {"used", axis.used}});
  }
  return list;
}

Json observed_json(const ObservedNorm& norm) {
  const Summary& summary = norm.summary;
  return {{"name", norm.name},
          {"kind", std::string(to_string(norm.spec.kind))},
          {"width", norm.spec.width},
          {"groups", norm.spec.groups},
          {"eps", norm.spec.eps},
          {"calls", norm.calls},
          {"rows", summary.rows},
          {"not_finite", summary.not_finite},
          {"sigma", summary.rows == 0 ? Json() : spread_json(summary.sigma)},
          {"ones_share", summary.ones_share},
          {"most_ones_share", summary.most_ones_share},
          {"least_radius", summary.least_radius},
          {"mean_radius", summary.mean_radius},
          {"frozen_scale_error", summary.frozen_scale_error},
          {"features", features_json(summary.features)},
          {"axes", axes_json(summary.axes)},
          {"sampled", summary.sampled},
          {"used_dimension", summary.used_dimension},
          {"available_dimension", summary.available_dimension},
          {"mean_curvature", finite_json(summary.mean_curvature)},
          {"most_curvature", finite_json(summary.most_curvature)}};
}

/// Tokens listed by name.
constexpr std::size_t listed_next_tokens = 20;

Json context_keys_json(const models::Head& head, const analysis::ContextKeys& keys) {
  constexpr std::array<const char*, analysis::norm_parts> names{"neither", "projection", "scaling", "both"};
  Json counts = keys.refused.empty() ? Json::object() : Json();
  for (std::size_t i = 0; keys.refused.empty() && i < names.size(); ++i) {
    counts[names[i]] = {{"selectable", keys.counts[i].selectable}, {"undecided", keys.counts[i].undecided}};
  }
  return {{"layer", head.layer},
          {"stack", head.stack},
          {"head", head.head},
          {"norm", keys.norm},
          {"contexts", keys.contexts},
          {"keys", keys.keys},
          {"own", names[static_cast<std::size_t>(keys.own)]},
          {"counts", std::move(counts)},
          {"refused", keys.refused}};
}

Json next_json(const analysis::NextTokens& next, const std::vector<std::string>& names) {
  std::vector<analysis::NextToken> list = next.tokens;
  std::stable_partition(list.begin(), list.end(),
                        [](const analysis::NextToken& t) { return t.answer != proof::Answer::yes; });
  list.resize(std::min(list.size(), listed_next_tokens));
  Json tokens = Json::array();
  for (const analysis::NextToken& token : list) {
    const bool named = token.token < names.size() && !names[token.token].empty();
    tokens.push_back({{"token", token.token},
                      {"name", named ? Json(names[token.token]) : Json()},
                      {"rows", token.rows},
                      {"first", token.first},
                      {"answer", std::string(to_string(token.answer))},
                      {"lead_at_most", finite_json(token.lead_at_most)}});
  }
  const auto with = [&](proof::Answer answer) {
    return std::count_if(next.tokens.begin(), next.tokens.end(),
                         [&](const analysis::NextToken& token) { return token.answer == answer; });
  };
  return {{"rows", next.rows},
          {"mean_divergence", next.mean_divergence},
          {"median_divergence", next.median_divergence},
          {"most_divergence", next.most_divergence},
          {"changed", next.changed},
          {"tokens", next.tokens.size()},
          {"reachable", with(proof::Answer::yes)},
          {"unreachable", with(proof::Answer::no)},
          {"undecided", with(proof::Answer::undecided)},
          {"left_out", next.left_out},
          {"list", std::move(tokens)}};
}

Json in_model_json(const InModel& within) {
  Json heads = Json::array();
  for (const analysis::ContextKeys& keys : within.heads) {
    heads.push_back(context_keys_json(within.model->heads[keys.head], keys));
  }
  return {{"heads", std::move(heads)},
          {"final_norm", within.final_norm},
          {"next", within.next ? next_json(*within.next, within.tokens) : Json()},
          {"next_refused", within.next_refused}};
}

}  // namespace

Json activations(const std::string& model, const std::vector<ObservedNorm>& norms,
                 const std::vector<std::pair<std::string, std::string>>& not_understood,
                 const InModel* within) {
  Json document = {{"schema", "normscope.activations/1"}, {"version", version}, {"model", model}};
  document["norms"] = Json::array();
  for (const ObservedNorm& norm : norms) document["norms"].push_back(observed_json(norm));
  document["not_understood"] = Json::array();
  for (const auto& [name, reason] : not_understood) {
    document["not_understood"].push_back({{"name", name}, {"reason", reason}});
  }
  document["in_model"] = within == nullptr ? Json() : in_model_json(*within);
  return document;
}

}  // namespace normscope::results
