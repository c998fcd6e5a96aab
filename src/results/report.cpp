#include <normscope/results/documents.hpp>

#include <algorithm>

#include <nlohmann/json.hpp>

#include <normscope/analysis/report.hpp>
#include <normscope/core/version.hpp>
#include <normscope/results/words.hpp>
#include <normscope/selectability/reach.hpp>

#include "head.hpp"
#include "layout.hpp"
#include "ranges_json.hpp"

namespace normscope::results {
namespace {

/// Number of points of a spectrum, unless the whole is requested.
constexpr std::size_t spectrum_points = 128;

using Json = nlohmann::ordered_json;
using analysis::Axis;
using analysis::Component;
using analysis::FileSize;
using analysis::Image;
using analysis::Neighbour;
using analysis::NormReport;
using analysis::NullSpace;
using analysis::Outlier;
using analysis::ParameterStatistics;
using analysis::Report;
using heads::HeadReach;

const char* to_text(models::Source source) {
  switch (source) {
    case models::Source::config: return "config";
    case models::Source::tensors: return "tensors";
    case models::Source::metadata: return "metadata";
    case models::Source::assumed: return "assumed";
  }
  return "";
}

const char* to_text(models::Placement placement) {
  switch (placement) {
    case models::Placement::pre: return "pre";
    case models::Placement::post: return "post";
    case models::Placement::inside: return "inside";
    case models::Placement::unknown: return "unknown";
  }
  return "";
}

template <typename T, typename Convert>
Json list(const std::vector<T>& items, Convert convert) {
  Json result = Json::array();
  for (const T& item : items) result.push_back(convert(item));
  return result;
}

template <typename T, typename Convert>
Json optional(const std::optional<T>& item, Convert convert) {
  return item ? Json(convert(*item)) : Json(nullptr);
}

Json to_json(const models::Linear& linear) {
  Json json = {{"role", linear.role},
               {"tensor", linear.weight.selector()},
               {"bias", optional(linear.bias, [](const models::Slice& bias) { return bias.selector(); })},
               {"layout", layout_text(linear.layout)},
               {"in", linear.in},
               {"first_out", linear.first_out},
               {"out", linear.out}};
  if (!linear.not_modelled.empty()) json["not_modelled"] = linear.not_modelled;
  return json;
}

Json to_json(const Component& component) {
  return {{"coordinate", component.coordinate}, {"weight", component.weight}};
}

Json to_json(const ParameterStatistics& statistics, const models::Slice& slice) {
  return {{"tensor", slice.selector()},  {"min", statistics.min},
          {"max", statistics.max},       {"mean", statistics.mean},
          {"std", statistics.std},       {"median_abs", statistics.median_abs},
          {"length", statistics.length}, {"negative", statistics.negative},
          {"zero", statistics.zero},     {"not_finite", statistics.not_finite}};
}

Json to_json(const NullSpace& space) {
  return {{"dim", space.dim},
          {"cosine_to_ones", optional(space.cosine_to_ones, [](double cosine) { return cosine; })},
          {"top", list(space.top, [](const Component& component) { return to_json(component); })}};
}

Json to_json(const Image& image, bool whole_spectrum) {
  Json spectrum = Json::array();
  for (const std::size_t rank : analysis::thinned_ranks(image.lengths.size(), spectrum_points)) {
    spectrum.push_back({{"rank", rank}, {"length", image.lengths[rank - 1]}});
  }
  Json json = {{"semi_axes", image.semi_axes},
               {"longest", image.longest},
               {"median", image.median},
               {"shortest", image.shortest},
               {"condition", image.condition},
               {"effective_dimension", image.effective_dimension},
               {"rms_radius", image.rms_radius},
               {"energy", image.energy},
               {"energy_top_1", image.energy_top_1},
               {"energy_top_8", image.energy_top_8},
               {"spectrum", spectrum},
               {"top_axes", list(image.top_axes, [](const Axis& axis) {
                  return Json{{"rank", axis.rank},
                              {"length", axis.length},
                              {"ratio_to_median", axis.ratio_to_median},
                              {"coordinate", axis.largest.coordinate},
                              {"weight", axis.largest.weight}};
                })}};
  if (whole_spectrum) json["lengths"] = image.lengths;
  return json;
}

Json identity(const models::Norm& norm) {
  Json json = {{"name", norm.name},
               {"role", norm.role},
               {"layer", optional(norm.layer, [](int layer) { return layer; })},
               {"stack", norm.stack},
               {"kind", std::string(to_string(norm.kind))},
               {"width", norm.width},
               {"groups", norm.groups},
               {"eps", norm.eps},
               {"eps_source", to_text(norm.eps_source)},
               {"placement", to_text(norm.placement)},
               {"order_known", norm.order_known},
               {"applications", norm.applications},
               {"gain_offset", norm.gain_offset}};
  json["effect"] = std::string(to_string(norm.effect()));
  if (norm.alpha) json["alpha"] = norm.alpha->selector();
  if (norm.shift) json["shift"] = norm.shift->selector();
  return json;
}

void add_connections(Json& json, const models::Norm& norm) {
  json["connections_known"] = norm.connections_known;
  json["readers"] = list(norm.readers, [](const models::Linear& linear) { return to_json(linear); });
  json["writers"] = list(norm.writers, [](const models::Linear& linear) { return to_json(linear); });
  json["writing_norms"] = norm.writing_norms;
}

Json to_json(const NormReport& report, std::size_t index, const Report& whole, bool whole_spectra) {
  Json json = {{"index", index}};
  json.update(identity(report.norm));
  json["not_measured"] = report.not_measured.empty() ? Json(nullptr) : Json(report.not_measured);
  const auto parameter = [](const std::optional<ParameterStatistics>& statistics,
                            const std::optional<models::Slice>& slice) {
    return statistics && slice ? to_json(*statistics, *slice) : Json(nullptr);
  };
  json["gain"] = parameter(report.gain, report.norm.gain);
  json["bias"] = parameter(report.bias, report.norm.bias);
  json["null_space"] = optional(report.null_space, [](const NullSpace& space) { return to_json(space); });
  json["image"] = optional(report.image, [&](const Image& image) { return to_json(image, whole_spectra); });
  json["shift_over_radius"] = optional(report.shift_over_radius, [](double shift) { return shift; });
  json["outlier_count"] = report.outliers.size();
  json["outliers"] = Json::array();
  for (std::size_t i = 0; i < std::min(report.outliers.size(), analysis::listed_outliers); ++i) {
    const Outlier& outlier = report.outliers[i];
    json["outliers"].push_back({{"coordinate", outlier.coordinate},
                                {"gain", outlier.gain},
                                {"ratio_to_median", outlier.ratio_to_median}});
  }
  json["switched_off_count"] = report.switched_off.size();
  json["switched_off"] = Json::array();
  for (std::size_t i = 0; i < std::min(report.switched_off.size(), analysis::listed_outliers); ++i) {
    json["switched_off"].push_back(
        {{"coordinate", report.switched_off[i].coordinate}, {"gain", report.switched_off[i].gain}});
  }
  json["sign_changes"] = report.sign_changes;
  json["next"] = optional(report.next, [&](const Neighbour& next) {
    return Json{{"index", next.index},
                {"name", whole.norms[next.index].norm.name},
                {"similarity", next.similarity},
                {"top_axis_cosine", next.top_axis_cosine}};
  });
  add_connections(json, report.norm);
  json["reader_weights"] = list(report.readers, [](const analysis::Reader& reader) {
    return Json{{"reader", reader.index},
                {"removed", reader.removed},
                {"removed_by_chance", reader.chance},
                {"rows_along_longest_axis", reader.along_longest},
                {"features", list(reader.features, [](const Component& component) {
                   return Json{{"coordinate", component.coordinate}, {"share", component.weight}};
                 })}};
  });
  // What cannot be read has no image.
  json["reproduce"] = report.not_measured.empty() ? geometry_command(whole.path, report.norm) : "";
  return json;
}

Json model_json(const models::Model& model) {
  return {{"architecture", model.architecture},
          {"title", model.title},
          {"evidence", model.evidence},
          {"layers", model.layers},
          {"width", model.width},
          {"heads_per_layer", model.heads_per_layer},
          {"key_value_heads", model.key_value_heads},
          {"parameters", model.parameters},
          {"other_norms", list(model.other_norms,
                               [](const models::OtherNorms& other) {
                                 return Json{{"kind", other.kind}, {"count", other.count}};
                               })},
          {"missing", model.missing},
          {"notes", model.notes}};
}

/// The first entries of each list; `normscope reach` has all.
constexpr std::size_t listed_tokens = 20;

Json survey_json(const selectability::VocabularyReach& vocabulary) {
  const selectability::Survey& survey = *vocabulary.survey;
  const std::vector<std::string>& names = vocabulary.names;
  const auto tokens = [&](std::vector<std::size_t> which) {
    which.resize(std::min(which.size(), listed_tokens));
    Json result = Json::array();
    for (const std::size_t token : which) {
      const bool named = token < names.size() && !names[token].empty();
      result.push_back(
          {{"token", token},
           {"name", named ? Json(names[token]) : Json(nullptr)},
           {"lead_at_most", survey.tokens[token].upper},
           {"probability", {survey.probabilities[token].lower, survey.probabilities[token].upper}}});
    }
    return result;
  };
  const std::vector<std::size_t> unreachable = survey.with(proof::Answer::no);
  const std::vector<std::size_t> undecided = survey.with(proof::Answer::undecided);
  const selectability::Survey::LeftOut& left = survey.left_out;
  Json ties = Json::array();
  for (std::size_t i = 0; i < std::min(vocabulary.ties.size(), listed_tokens); ++i) {
    ties.push_back(tokens(vocabulary.ties[i]));
  }
  return {
      {"reachable", survey.with(proof::Answer::yes).size()},
      {"unreachable", unreachable.size()},
      {"undecided", undecided.size()},
      {"unreachable_without_ball", survey.unargmaxable()},
      {"unreachable_tokens", tokens(selectability::without_ties(unreachable, vocabulary.ties))},
      {"tie_groups", vocabulary.ties.size()},
      {"ties", std::move(ties)},
      {"nearest", tokens(survey.nearest(listed_tokens))},
      {"least_probable", tokens(survey.least_probable(listed_tokens))},
      {"left_out", {{"tokens", left.tokens}, {"leads", left.leads}, {"probabilities", left.probabilities}}}};
}

Json embedding_json(const analysis::EmbeddingUse& use) {
  return {{"over_mean", use.over_mean}, {"rows", list(use.rows, [](const analysis::EmbeddingRow& row) {
                                           return Json{
                                               {"token", row.token},
                                               {"name", row.name.empty() ? Json(nullptr) : Json(row.name)},
                                               {"entry", row.entry},
                                               {"share", row.share}};
                                         })}};
}

}  // namespace

Json report(const Report& audited, bool whole_spectra) {
  Json json = {{"schema", "normscope.report/1"}, {"version", version}};
  Json model = {{"name", audited.name},
                {"path", audited.path},
                {"format", audited.format},
                {"files", list(audited.files,
                               [](const FileSize& file) {
                                 return Json{{"name", file.name}, {"bytes", file.bytes}};
                               })},
                {"tensors", audited.tensors}};
  model.update(model_json(audited.model));
  model["metadata"] = Json::object();
  for (const auto& [key, value] : audited.metadata) model["metadata"][key] = value;
  json["model"] = model;
  const analysis::LeftOut left_out = analysis::left_out(audited);
  json["complete"] = left_out.nothing();
  json["left_out"] = {{"heads", left_out.heads}, {"readers", left_out.readers}, {"tokens", left_out.tokens}};
  json["norms"] = Json::array();
  for (std::size_t i = 0; i < audited.norms.size(); ++i) {
    json["norms"].push_back(to_json(audited.norms[i], i, audited, whole_spectra));
  }
  json["features"] = list(audited.features, [](const analysis::UnusualFeature& feature) {
    return Json{
        {"coordinate", feature.coordinate}, {"stack", feature.stack},
        {"switched_off_by", feature.off},   {"outlier_in", feature.outliers},
        {"norms", feature.norms.size()},    {"embedding", optional(feature.embedding, embedding_json)}};
  });
  json["heads"] = Json::array();
  for (const HeadReach& reach : audited.heads) {
    json["heads"].push_back(head_json(audited.model.heads[reach.head], reach, {}));
  }
  json["ranges"] = ranges_json(audited.ranges);
  json["vocabulary"] = optional(audited.model.vocabulary, [&](const models::Vocabulary& vocabulary) {
    Json result = {
        {"size", vocabulary.size},
        {"tied", vocabulary.tied},
        {"unembedding", optional(vocabulary.unembedding,
                                 [](const models::Linear& linear) { return linear.weight.selector(); })},
        {"final_norm", vocabulary.final_norm},
        {"logit_scale", vocabulary.logit_scale},
        {"soft_cap", vocabulary.soft_cap}};
    if (audited.vocabulary.survey) {
      result["reach"] = survey_json(audited.vocabulary);
    } else {
      result["refused"] = audited.vocabulary.refused;
    }
    return result;
  });
  const auto same = [](std::size_t index) { return index; };
  json["headlines"] = list(audited.headlines, [&](const analysis::Headline& one) {
    const HeadlineText headline = describe(one, audited);
    return Json{{"topic", std::string(to_string(headline.topic))},
                {"number", headline.number},
                {"of", headline.of},
                {"why", headline.why},
                {"norm_index", optional(headline.norm, same)},
                {"finding", optional(headline.finding, same)}};
  });
  json["findings"] = list(audited.findings, [&](const analysis::Finding& one) {
    const FindingText finding = describe(one, audited);
    Json numbers = Json::object();
    for (const auto& [name, value] : finding.numbers) numbers[name] = value;
    return Json{{"kind", finding.kind},
                {"norm", optional(finding.norm, [&](std::size_t i) { return audited.norms[i].norm.name; })},
                {"norm_index", optional(finding.norm, same)},
                {"text", finding.text},
                {"numbers", numbers},
                {"severity", finding.severity},
                {"reproduce", finding.reproduce},
                {"why", finding.why}};
  });
  return json;
}

Json inspection(const files::Checkpoint& checkpoint, const models::Model& model) {
  Json json = {{"schema", "normscope.inspect/1"},    {"version", version},
               {"path", checkpoint.path().string()}, {"format", std::string(checkpoint.format())},
               {"metadata", Json::object()},         {"tensors", Json::array()}};
  for (const auto& [key, value] : checkpoint.metadata()) json["metadata"][key] = value;
  for (const files::Tensor& tensor : checkpoint.tensors()) {
    json["tensors"].push_back(
        {{"name", std::string(tensor.name)},
         {"dtype", std::string(tensor.stored_type())},
         {"shape", std::vector<std::uint64_t>(tensor.shape.begin(), tensor.shape.end())},
         {"bytes", tensor.stored_bytes()},
         {"file", checkpoint.file_of(tensor).filename().string()}});
  }
  json["architecture"] = model_json(model);
  json["norms"] = list(model.norms, [](const models::Norm& norm) {
    Json item = identity(norm);
    const auto selector = [](const models::Slice& slice) { return slice.selector(); };
    item["gain"] = optional(norm.gain, selector);
    item["bias"] = optional(norm.bias, selector);
    add_connections(item, norm);
    return item;
  });
  return json;
}

}  // namespace normscope::results
