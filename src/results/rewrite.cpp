#include <normscope/results/documents.hpp>

#include <algorithm>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>

namespace normscope::results {
namespace {

using RewriteJson = nlohmann::ordered_json;

RewriteJson word_or_null(const std::string& text) {
  return text.empty() ? RewriteJson(nullptr) : RewriteJson(text);
}

RewriteJson planned_norm(const models::Norm& norm, const rewrite::NormPlan& plan) {
  std::set<std::string> seen;
  RewriteJson readers = RewriteJson::array();
  for (const models::Linear& reader : norm.readers) {
    if (seen.insert(reader.weight.selector()).second) readers.push_back(reader.weight.selector());
  }
  return {{"name", norm.name},
          {"role", norm.role},
          {"kind", std::string(to_string(norm.kind))},
          {"eps", norm.eps},
          {"groups", norm.groups},
          {"gain", norm.gain ? RewriteJson(norm.gain->selector()) : RewriteJson(nullptr)},
          {"gain_offset", norm.gain_offset},
          {"bias", norm.bias ? RewriteJson(norm.bias->selector()) : RewriteJson(nullptr)},
          {"readers", readers},
          {"fold", rewrite::to_string(plan.fold)},
          {"reason", word_or_null(plan.reason)}};
}

/// The edit to which a certificate belongs.
const rewrite::Edit& edit_of(const rewrite::Plan& plan, const rewrite::Certificate& certificate) {
  return *std::find_if(plan.edits.begin(), plan.edits.end(), [&](const rewrite::Edit& edit) {
    models::Slice slice = edit.from;
    slice.tensor = edit.tensor;
    return edit.change == certificate.change && slice.selector() == certificate.tensor;
  });
}

/// The stored matrix of an edit: the tensor's own, or the reader that gave it a norm's bias.
RewriteJson map_json(const rewrite::Edit& edit) {
  using rewrite::Change;
  if (edit.change == Change::center || edit.change == Change::rotate || edit.map.in == 0) return nullptr;
  return {{"tensor", edit.map.weight.selector()},
          {"layout", edit.map.layout == models::Layout::in_out ? "in_out" : "out_in"},
          {"in", edit.map.in},
          {"out", edit.map.stored_out}};
}

RewriteJson certificate_json(const rewrite::Plan& plan, const rewrite::Certificate& certificate) {
  const rewrite::Edit& edit = edit_of(plan, certificate);
  return {{"tensor", certificate.tensor},
          {"input", edit.from.selector()},
          {"map", map_json(edit)},
          {"change", rewrite::to_string(certificate.change)},
          {"norm", word_or_null(certificate.norm)},
          {"dtype", std::string(to_string(certificate.dtype))},
          {"rounding", certificate.rounding},
          {"bound", certificate.bound},
          {"relative_bound", certificate.relative_bound},
          {"observed_in_double", certificate.observed_in_double},
          {"observed_as_stored", certificate.observed_as_stored},
          {"undo_roundings", certificate.undo_roundings}};
}

RewriteJson reader_json(const rewrite::ReaderComparison& reader) {
  return {{"old", reader.old_weight},
          {"new", reader.new_weight},
          {"composite", reader.composite},
          {"raw", reader.raw},
          {"bias", reader.bias}};
}

RewriteJson norm_on_rows(const rewrite::NormOnRows& norm) {
  RewriteJson json = {{"norm", norm.norm},
                      {"given", norm.given},
                      {"tried", norm.tried},
                      {"mean_share", norm.mean_share},
                      {"readers", RewriteJson::array()}};
  for (const rewrite::ReaderOnRows& reader : norm.readers) {
    json["readers"].push_back(
        {{"reader", reader.reader}, {"largest", reader.largest}, {"relative", reader.relative}});
  }
  return json;
}

RewriteJson compared_norm(const rewrite::NormComparison& norm) {
  RewriteJson json = {{"old", norm.old_name},
                      {"new", norm.new_name},
                      {"agreement", rewrite::to_string(norm.agreement)},
                      {"old_kind", std::string(to_string(norm.old_kind))},
                      {"new_kind", std::string(to_string(norm.new_kind))},
                      {"old_eps", norm.old_eps},
                      {"new_eps", norm.new_eps},
                      {"gain_change", norm.gain_change},
                      {"gain_cosine", norm.gain_cosine},
                      {"bias_change", norm.bias_change},
                      {"readers", RewriteJson::array()}};
  for (const rewrite::ReaderComparison& reader : norm.readers) json["readers"].push_back(reader_json(reader));
  return json;
}

}  // namespace

nlohmann::ordered_json comparison(const files::Checkpoint& before, const files::Checkpoint& after,
                                  const rewrite::Comparison& compared) {
  RewriteJson json = {{"schema", "normscope.compare/1"},
                      {"version", version},
                      {"old", before.path().string()},
                      {"new", after.path().string()},
                      {"agreement", rewrite::to_string(compared.agreement)},
                      {"tolerance", compared.tolerance},
                      {"findings", RewriteJson::array()},
                      {"configuration", RewriteJson::array()},
                      {"norms", RewriteJson::array()},
                      {"writers", RewriteJson::array()},
                      {"others", RewriteJson::array()}};
  for (const auto& finding : compared.findings) {
    json["findings"].push_back({{"kind", finding.kind}, {"text", finding.text}});
  }
  for (const auto& field : compared.configuration) {
    json["configuration"].push_back({{"field", field.field},
                                     {"old", word_or_null(field.before)},
                                     {"new", word_or_null(field.after)},
                                     {"effect", rewrite::to_string(field.effect)}});
  }
  for (const auto& norm : compared.norms) json["norms"].push_back(compared_norm(norm));
  for (const auto& writer : compared.writers) {
    json["writers"].push_back({{"old", writer.old_weight},
                               {"new", writer.new_weight},
                               {"raw", writer.raw},
                               {"centered", writer.centered},
                               {"only_layer_norms", writer.only_layer_norms}});
  }
  for (const auto& other : compared.others) {
    json["others"].push_back({{"name", other.name},
                              {"new", word_or_null(other.new_name)},
                              {"in_old", other.in_old},
                              {"in_new", other.in_new},
                              {"change", other.change}});
  }
  json["not_compared"] = compared.not_compared;
  return json;
}

nlohmann::ordered_json rewrite(const files::Checkpoint& checkpoint, const models::Model& model,
                               const rewrite::Plan& plan, const rewrite::Result* result) {
  RewriteJson json = {{"schema", "normscope.rewrite/1"},       {"version", version},
                      {"input", checkpoint.path().string()},   {"architecture", model.architecture},
                      {"fold_gains", plan.options.fold_gains}, {"migrate", plan.options.migrate},
                      {"center", plan.options.center},         {"untied", nullptr},
                      {"norms", RewriteJson::array()},         {"streams", RewriteJson::array()}};
  if (plan.untied) {
    json["untied"] = {
        {"table", plan.untied->table}, {"head", plan.untied->head}, {"bytes", plan.untied->bytes}};
  }
  for (const rewrite::NormPlan& norm : plan.norms)
    json["norms"].push_back(planned_norm(model.norms[norm.norm], norm));
  for (const rewrite::StreamPlan& stream : plan.streams) {
    RewriteJson norms = RewriteJson::array();
    for (const std::size_t norm : stream.norms) norms.push_back(model.norms[norm].name);
    json["streams"].push_back({{"stack", word_or_null(stream.stack)},
                               {"centered", stream.centered},
                               {"reason", word_or_null(stream.reason)},
                               {"norms", norms},
                               {"writers", stream.writers}});
  }
  json["rotations"] = RewriteJson::array();
  for (const rewrite::RotationPlan& stream : plan.rotations) {
    RewriteJson norms = RewriteJson::array();
    for (const std::size_t norm : stream.norms) norms.push_back(model.norms[norm].name);
    json["rotations"].push_back({{"stack", word_or_null(stream.stack)},
                                 {"rotated", stream.rotation != nullptr},
                                 {"keeps_mean", stream.rotation && stream.rotation->keeps_ones()},
                                 {"reason", word_or_null(stream.reason)},
                                 {"norms", norms},
                                 {"writers", stream.writers}});
  }
  json["certificates"] = RewriteJson::array();
  json["activations"] = RewriteJson::array();
  json["configuration"] = RewriteJson::array();
  json["files"] = RewriteJson::array();
  json["not_copied"] = RewriteJson::array();
  json["undo"] = nullptr;
  json["not_undone"] = nullptr;
  if (result == nullptr) return json;
  for (const rewrite::Certificate& certificate : result->certificates) {
    json["certificates"].push_back(certificate_json(plan, certificate));
  }
  for (const rewrite::NormOnRows& norm : result->on_rows) json["activations"].push_back(norm_on_rows(norm));
  json["configuration"] = result->configuration;
  for (const auto& file : result->files) json["files"].push_back(file.string());
  json["not_copied"] = result->not_copied;
  json["undo"] = word_or_null(result->recipe.string());
  json["not_undone"] = word_or_null(result->not_undone);
  return json;
}

nlohmann::ordered_json undone(const files::Checkpoint& rewritten, const rewrite::Restoration& restoration) {
  RewriteJson json = {{"schema", "normscope.undo/1"},       {"version", version},
                      {"input", rewritten.path().string()}, {"tensors", RewriteJson::array()},
                      {"files", RewriteJson::array()},      {"not_copied", restoration.not_copied}};
  for (const rewrite::Restored& tensor : restoration.tensors) {
    json["tensors"].push_back({{"tensor", tensor.tensor},
                               {"change", rewrite::to_string(tensor.change)},
                               {"dtype", std::string(to_string(tensor.dtype))},
                               {"rounding", tensor.rounding},
                               {"roundings", tensor.roundings}});
  }
  for (const auto& file : restoration.files) json["files"].push_back(file.string());
  return json;
}

}  // namespace normscope::results
