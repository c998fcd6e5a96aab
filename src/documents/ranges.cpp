#include <normscope/documents/ranges.hpp>

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>

namespace normscope::documents {
namespace {

using Json = nlohmann::ordered_json;
using normscope::ranges::End;
using normscope::ranges::LogitRanges;
using normscope::ranges::NormRanges;
using normscope::ranges::ReaderRanges;

/// Rows that a list names; all of them are counted.
constexpr std::size_t most_listed = 64;

Json end_json(const End& end) { return {{"row", end.row}, {"bound", end.bound}, {"attained", end.attained}}; }

Json listed(const std::vector<std::size_t>& rows) {
  return {{"count", rows.size()},
          {"rows", std::vector<std::size_t>(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                             rows.size(), most_listed)))}};
}

Json overflows(double size) {
  Json names = Json::array();
  for (const NumberType& type : number_types) {
    if (size > type.largest) names.push_back(type.name);
  }
  return names;
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
  json["worst_over_typical"] = reader.typical > 0.0 ? Json(reader.size() / reader.typical) : Json();
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
                    {"may_overflow", overflows(norm.largest)}};
  json["readers"] = Json::array();
  for (const ReaderRanges& reader : norm.readers) json["readers"].push_back(reader_ranges_json(reader));
  return json;
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

Json ranges(const checkpoint::Checkpoint& checkpoint, const model::Model& model,
            const normscope::ranges::ModelRanges& found) {
  Json document = {{"schema", "normscope.ranges/1"},
                   {"version", version},
                   {"path", checkpoint.path().string()},
                   {"architecture", model.architecture}};
  document["norms"] = Json::array();
  for (const NormRanges& norm : found.norms) document["norms"].push_back(norm_ranges_json(norm));
  document["logits"] = found.logits ? logits_json(*found.logits) : Json();
  document["logits_refused"] = found.logits_refused;
  document["notes"] = model.notes;
  return document;
}

}  // namespace normscope::documents
