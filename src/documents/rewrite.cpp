#include <normscope/documents/rewrite.hpp>

#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>

namespace normscope::documents {
namespace {

using RewriteJson = nlohmann::ordered_json;

RewriteJson text_or_null(const std::string& text) {
  return text.empty() ? RewriteJson(nullptr) : RewriteJson(text);
}

RewriteJson planned_norm(const model::Norm& norm, const rewrite::NormPlan& plan) {
  std::set<std::string> seen;
  RewriteJson readers = RewriteJson::array();
  for (const model::Linear& reader : norm.readers) {
    if (seen.insert(reader.weight.selector()).second) readers.push_back(reader.weight.selector());
  }
  return {{"name", norm.name},
          {"role", norm.role},
          {"kind", std::string(to_string(norm.kind))},
          {"eps", norm.eps},
          {"gain_offset", norm.gain_offset},
          {"readers", readers},
          {"fold", rewrite::to_string(plan.fold)},
          {"reason", text_or_null(plan.reason)}};
}

RewriteJson certificate_json(const rewrite::Certificate& certificate) {
  return {{"tensor", certificate.tensor},
          {"change", rewrite::to_string(certificate.change)},
          {"norm", text_or_null(certificate.norm)},
          {"dtype", std::string(to_string(certificate.dtype))},
          {"rounding", certificate.rounding},
          {"bound", certificate.bound},
          {"relative_bound", certificate.relative_bound},
          {"observed_in_double", certificate.observed_in_double},
          {"observed_as_stored", certificate.observed_as_stored}};
}

}  // namespace

nlohmann::ordered_json rewrite(const checkpoint::Checkpoint& checkpoint, const model::Model& model,
                               const rewrite::Plan& plan, const rewrite::Result* result) {
  RewriteJson json = {{"schema", "normscope.rewrite/1"},
                      {"version", version},
                      {"input", checkpoint.path().string()},
                      {"architecture", model.architecture},
                      {"fold_gains", plan.options.fold_gains},
                      {"center", plan.options.center},
                      {"untied", nullptr},
                      {"norms", RewriteJson::array()},
                      {"streams", RewriteJson::array()}};
  if (plan.untied) {
    json["untied"] = {
        {"table", plan.untied->table}, {"head", plan.untied->head}, {"bytes", plan.untied->bytes}};
  }
  for (const rewrite::NormPlan& norm : plan.norms)
    json["norms"].push_back(planned_norm(model.norms[norm.norm], norm));
  for (const rewrite::StreamPlan& stream : plan.streams) {
    RewriteJson norms = RewriteJson::array();
    for (const std::size_t norm : stream.norms) norms.push_back(model.norms[norm].name);
    json["streams"].push_back({{"stack", text_or_null(stream.stack)},
                               {"centered", stream.centered},
                               {"reason", text_or_null(stream.reason)},
                               {"norms", norms},
                               {"writers", stream.writers}});
  }
  json["certificates"] = RewriteJson::array();
  json["configuration"] = RewriteJson::array();
  json["files"] = RewriteJson::array();
  json["not_copied"] = RewriteJson::array();
  if (result == nullptr) return json;
  for (const rewrite::Certificate& certificate : result->certificates) {
    json["certificates"].push_back(certificate_json(certificate));
  }
  json["configuration"] = result->configuration;
  for (const auto& file : result->files) json["files"].push_back(file.string());
  json["not_copied"] = result->not_copied;
  return json;
}

}  // namespace normscope::documents
