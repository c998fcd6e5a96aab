#include <normscope/documents/activations.hpp>

#include <cmath>

#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>

namespace normscope::documents {
namespace {

using Json = nlohmann::ordered_json;
using normscope::activations::AxisUse;
using normscope::activations::Feature;
using normscope::activations::ObservedNorm;
using normscope::activations::Spread;
using normscope::activations::Summary;

Json finite_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

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
          {"mean_curvature", finite_or_null(summary.mean_curvature)},
          {"most_curvature", finite_or_null(summary.most_curvature)}};
}

}  // namespace

Json activations(const std::string& model, const std::vector<ObservedNorm>& norms,
                 const std::vector<std::pair<std::string, std::string>>& not_understood) {
  Json document = {{"schema", "normscope.activations/1"}, {"version", version}, {"model", model}};
  document["norms"] = Json::array();
  for (const ObservedNorm& norm : norms) document["norms"].push_back(observed_json(norm));
  document["not_understood"] = Json::array();
  for (const auto& [name, reason] : not_understood) {
    document["not_understood"].push_back({{"name", name}, {"reason", reason}});
  }
  return document;
}

}  // namespace normscope::documents
