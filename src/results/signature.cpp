#include <normscope/results/documents.hpp>

#include <nlohmann/json.hpp>

#include <normscope/core/version.hpp>

#include "finite.hpp"

namespace normscope::results {
namespace {

using Json = nlohmann::ordered_json;

Json signature_row(std::size_t index, const signature::RowResult& row) {
  return {{"row", index},
          {"verdict", signature::to_string(row.verdict)},
          {"reason", signature::to_string(row.reason)},
          {"proved", row.proved},
          {"values", row.values},
          {"off_subspace", row.off},
          {"off_subspace_units", row.off_units},
          {"length", row.length},
          {"length_units", row.length_units},
          {"mean_square", finite_json(row.mean_square)},
          {"margin", row.margin}};
}

}  // namespace

Json signature_verify(const signature::Verification& result, const signature::Outputs& outputs,
                      const SignatureSource& source) {
  Json document = {{"schema", "normscope.signature-verify/1"},
                   {"version", version},
                   {"path", source.path},
                   {"against", source.kind},
                   {"outputs", source.outputs},
                   {"rows", outputs.rows()},
                   {"tokens", outputs.vocabulary()},
                   {"dimension", source.dimension},
                   {"precision", to_string(outputs.precision().dtype)},
                   {"precision_stated", outputs.precision_is_stated()},
                   {"temperature", source.temperature},
                   {"soft_cap", outputs.soft_cap()},
                   {"verdict", signature::to_string(result.verdict)},
                   {"reason", signature::to_string(result.reason)},
                   {"proved", result.proved},
                   {"consistent", result.with(signature::Verdict::consistent)},
                   {"not_this_model", result.with(signature::Verdict::not_this_model)},
                   {"undecided", result.with(signature::Verdict::undecided)}};
  document["results"] = Json::array();
  for (std::size_t row = 0; row < result.rows.size(); ++row) {
    document["results"].push_back(signature_row(row, result.rows[row]));
  }
  return document;
}

Json signature_extract(const signature::Extraction& result, const signature::Subspace& subspace,
                       const signature::Outputs& outputs, const std::string& path) {
  Json document = {{"schema", "normscope.signature-extract/1"},
                   {"version", version},
                   {"outputs", outputs.name()},
                   {"path", path},
                   {"rows", result.rows},
                   {"distinct_rows", result.distinct},
                   {"tokens", outputs.vocabulary()},
                   {"precision", to_string(outputs.precision().dtype)},
                   {"rank", subspace.rank},
                   {"unknowns", signature::unknowns(subspace.rank)},
                   {"rounds", result.rounds},
                   {"surface", result.surface},
                   {"relative_surface", result.relative_surface}};
  document["ellipse"] = Json();
  if (!result.ellipse) return document;
  const signature::Ellipse& ellipse = *result.ellipse;
  document["ellipse"] = {{"semi_axes", ellipse.semi_axes},   {"errors", ellipse.errors},
                         {"drowned", ellipse.drowned()},     {"off", ellipse.off},
                         {"least_ritz", ellipse.least_ritz}, {"largest_ritz", ellipse.largest_ritz}};
  return document;
}

Json signature_kind(const signature::Kind& result, const signature::Subspace& subspace,
                    const signature::Outputs& outputs) {
  const bool was_fitted = result.extraction.rows > 0;
  return {{"schema", "normscope.signature-kind/1"},
          {"version", version},
          {"outputs", outputs.name()},
          {"rows", outputs.rows()},
          {"tokens", outputs.vocabulary()},
          {"precision", to_string(outputs.precision().dtype)},
          {"norm", signature::to_string(result.norm)},
          {"rank", subspace.rank},
          {"fills", subspace.fills},
          {"width", result.width},
          {"by_width", result.by_width},
          {"rows_needed", result.rows_needed},
          {"relative_surface", was_fitted ? Json(result.extraction.relative_surface) : Json()},
          {"noise", subspace.noise},
          {"singular_values", subspace.singular_values}};
}

Json signature_compare(const signature::Comparison& result, const std::string& one,
                       const std::string& other) {
  return {{"schema", "normscope.signature-compare/1"},
          {"version", version},
          {"one", one},
          {"other", other},
          {"relation", signature::to_string(result.relation)},
          {"scale", result.scale},
          {"outside", result.outside},
          {"outside_by_chance", result.by_chance},
          {"shape", result.shape},
          {"centre", result.centre},
          {"tolerance", result.tolerance}};
}

}  // namespace normscope::results
