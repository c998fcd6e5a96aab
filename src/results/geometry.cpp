#include <normscope/results/documents.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <normscope/core/version.hpp>
#include <normscope/norm/image.hpp>

namespace normscope::results {

using Json = nlohmann::ordered_json;

namespace {

Json rows_json(const Directions& rows) {
  Json list = Json::array();
  for (std::size_t i = 0; i < rows.size(); ++i) list.emplace_back(rows.row(i));
  return list;
}

Json optional_number(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

}  // namespace

Directions longest_axes(const norm::NormImage& image, std::size_t count, unsigned threads) {
  const std::size_t rows = std::min(count, image.semi_axes().size());
  Directions axes{.values = std::vector<double>(rows * image.width()), .width = image.width()};
  image.axes(0, axes.view(), threads);
  return axes;
}

Directions null_space(const norm::NormImage& image) {
  Directions basis{.values = std::vector<double>(image.null_space_dim() * image.width()),
                   .width = image.width()};
  image.null_space(basis.view());
  return basis;
}

Json geometry(const NormSpec& spec, const norm::NormImage& image, const GeometryDetails& details) {
  Json json = {{"schema", "normscope.geometry/1"},
               {"version", version},
               {"norm", std::string(to_string(spec.kind))},
               {"width", spec.width},
               {"groups", spec.groups},
               {"eps", spec.eps},
               {"effect", std::string(to_string(spec.effect()))},
               {"null_space_dim", image.null_space_dim()},
               {"semi_axes", image.semi_axes()},
               {"median", image.median()},
               {"condition", image.condition()},
               {"effective_dimension", norm::effective_dimension(spec)},
               {"rms_radius", norm::rms_radius(spec)},
               {"energy", norm::energy(spec)}};
  if (spec.elementwise()) {
    json["alpha"] = spec.alpha;
    json["shift"] = spec.shift;
  }
  if (!details.source.is_null()) json["source"] = details.source;
  json["axes"] = rows_json(details.axes);
  if (details.null_space) json["null_space"] = rows_json(*details.null_space);
  if (details.gain) {
    json["gain"] = {{"min", details.gain->min},           {"max", details.gain->max},
                    {"mean", details.gain->mean},         {"median_abs", details.gain->median_abs},
                    {"negative", details.gain->negative}, {"zero", details.gain->zero}};
  }
  if (!spec.bias.empty()) json["shift_over_radius"] = optional_number(norm::shift_over_radius(spec));
  if (details.compared) {
    json["similarity"] = details.compared->similarity;
    json["top_axis_cosine"] = details.compared->top_axis_cosine;
  }
  return json;
}

Json curvature(const NormSpec& spec, std::size_t rows, const std::vector<norm::GroupCurvature>& groups,
               const Json& source) {
  Json list = Json::array();
  for (const norm::GroupCurvature& result : groups) {
    list.push_back({{"k", result.groups},
                    {"mean", result.mean},
                    {"ratio", result.ratio},
                    {"min", result.least},
                    {"max", result.largest},
                    {"bound", optional_number(result.bound)},
                    {"rows", result.rows}});
  }
  return {{"schema", "normscope.curvature/1"},
          {"version", version},
          {"norm", std::string(to_string(spec.kind))},
          {"width", spec.width},
          {"rows", rows},
          {"eps", spec.eps},
          {"groups", list},
          {"source", source}};
}

}  // namespace normscope::results
