#include <normscope/results/documents.hpp>

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>

#include "layout.hpp"
#include "ranges_json.hpp"

namespace normscope::results {
namespace {

using Json = nlohmann::ordered_json;
using normscope::analysis::End;
using normscope::analysis::LogitRanges;
using normscope::analysis::NormRanges;
using normscope::analysis::ReaderRanges;

/// Largest number of rows in a list; the count includes all of them.
constexpr std::size_t most_listed = 64;

Json end_json(const End& end) { return {{"row", end.row}, {"bound", end.bound}, {"attained", end.attained}}; }

Json listed(const std::vector<std::size_t>& rows) {
  return {{"count", rows.size()},
          {"rows", std::vector<std::size_t>(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                             rows.size(), most_listed)))}};
}

Json overflows(double size) {
  Json names = Json::array();
  for (const normscope::analysis::NumberType& type : normscope::analysis::number_types) {
    if (size > type.largest) names.push_back(type.name);
  }
  return names;
}

/// The scale that holds `size` in 127 steps, and how many of them `typical` takes.
Json int8_json(double size, double typical) {
  return {{"scale", size / 127.0},
          {"typical_steps", size > 0.0 ? Json(normscope::analysis::int8_steps(size, typical)) : Json()}};
}

Json reader_ranges_json(const ReaderRanges& reader) {
  Json json = {{"role", reader.role}, {"weight", reader.weight}, {"rows", reader.rows}};
  if (!reader.refused.empty()) {
    json["refused"] = reader.refused;
    return json;
  }
  json["lowest"] = end_json(reader.lowest);
  json["highest"] = end_json(reader.highest);
  json["typical"] = reader.typical;
  json["worst_over_typical"] = reader.typical > 0.0 ? Json(reader.ratio()) : Json();
  json["int8"] = int8_json(reader.size(), reader.typical);
  json["never_positive"] = listed(reader.never_positive);
  json["never_negative"] = listed(reader.never_negative);
  json["may_overflow"] = overflows(reader.size());
  return json;
}

Json norm_ranges_json(const NormRanges& norm) {
  Json json = {{"name", norm.name}};
  if (!norm.refused.empty()) {
    json["refused"] = norm.refused;
    return json;
  }
  json["output"] = {{"largest", norm.largest},
                    {"feature", norm.feature},
                    {"median", norm.median},
                    {"typical", norm.typical},
                    {"median_typical", norm.median_typical},
                    {"int8", int8_json(norm.largest, norm.median_typical)},
                    {"may_overflow", overflows(norm.largest)}};
  json["readers"] = Json::array();
  for (const ReaderRanges& reader : norm.readers) json["readers"].push_back(reader_ranges_json(reader));
  return json;
}

/// Runs of output features of the stored matrix: first and number of each.
Json outputs_json(const models::Linear& map) {
  if (map.out_indices.empty()) return {{map.first_out, map.out}};
  Json runs = Json::array();
  std::uint64_t begin = 0;
  for (std::uint64_t j = 1; j <= map.out; ++j) {
    if (j < map.out && map.out_indices[j] == map.out_indices[j - 1] + 1) continue;
    runs.push_back({map.out_indices[begin], j - begin});
    begin = j;
  }
  return runs;
}

Json selector_or_null(const std::optional<models::Slice>& slice) {
  return slice ? Json(slice->selector()) : Json();
}

/// The inputs from which each range was computed, for checkers.
void add_sources(const models::Model& model, Json& norms) {
  for (std::size_t i = 0; i < norms.size(); ++i) {
    const models::Norm& norm = model.norms[i];
    norms[i]["source"] = {{"kind", std::string(to_string(norm.kind))},
                          {"width", norm.width},
                          {"groups", norm.groups},
                          {"gain", selector_or_null(norm.gain)},
                          {"gain_offset", norm.gain_offset},
                          {"bias", selector_or_null(norm.bias)}};
    if (!norms[i].contains("readers")) continue;
    for (std::size_t k = 0; k < norm.readers.size(); ++k) {
      const models::Linear& map = norm.readers[k];
      norms[i]["readers"][k]["source"] = {{"layout", layout_text(map.layout)},
                                          {"outputs", outputs_json(map)},
                                          {"bias", selector_or_null(map.bias)}};
    }
  }
}

Json logits_json(const LogitRanges& logits) {
  return {{"norm", logits.norm},
          {"tokens", logits.tokens},
          {"lowest", end_json(logits.lowest)},
          {"highest", end_json(logits.highest)},
          {"scale", logits.scale},
          {"soft_cap", logits.soft_cap}};
}

}  // namespace

Json ranges_json(const normscope::analysis::ModelRanges& found) {
  Json json = {{"norms", Json::array()}};
  for (const NormRanges& norm : found.norms) json["norms"].push_back(norm_ranges_json(norm));
  json["logits"] = found.logits ? logits_json(*found.logits) : Json();
  json["logits_refused"] = found.logits_refused;
  return json;
}

Json ranges(const files::Checkpoint& checkpoint, const models::Model& model,
            const normscope::analysis::ModelRanges& found) {
  Json document = {{"schema", "normscope.ranges/1"},
                   {"version", version},
                   {"path", checkpoint.path().string()},
                   {"architecture", model.architecture}};
  document.update(ranges_json(found));
  add_sources(model, document["norms"]);
  document["notes"] = model.notes;
  for (std::string& sentence : normscope::analysis::not_covered(model)) {
    document["notes"].push_back(std::move(sentence));
  }
  return document;
}

}  // namespace normscope::results
