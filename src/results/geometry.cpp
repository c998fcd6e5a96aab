#include <normscope/results/documents.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <normscope/norm/image.hpp>

#include "shared.hpp"

namespace normscope::results {

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

struct GeometryFields {
  const NormSpec& spec;
  const norm::NormImage& image;
  const GeometryDetails& details;
};

std::vector<std::span<const double>> rows_of(const Directions& directions) {
  std::vector<std::span<const double>> rows;
  for (std::size_t i = 0; i < directions.size(); ++i) rows.push_back(directions.row(i));
  return rows;
}

template <class V>
void fields(V& v, const GeometryFields& x) {
  const NormSpec& spec = x.spec;
  const GeometryDetails& details = x.details;
  begin(v, "geometry");
  v("norm", spec.kind);
  v("width", spec.width);
  v("groups", spec.groups);
  v("eps", spec.eps);
  v("effect", spec.effect(), about_effect);
  v("null_space_dim", x.image.null_space_dim(), "number of dimensions that the norm erases");
  v("semi_axes", x.image.semi_axes(), "nonzero semi-axes, descending");
  v("median", x.image.median(), "median semi-axis");
  v("condition", finite_or_null(x.image.condition()),
    "longest over shortest semi-axis; null beyond the range of float64");
  v("effective_dimension", norm::effective_dimension(spec));
  v("rms_radius", finite_or_null(norm::rms_radius(spec)), about_rms_radius);
  v("energy", finite_or_null(norm::energy(spec)), about_energy);
  v.maybe(spec.elementwise(), "alpha", spec.alpha, "α, elementwise kinds only");
  v.maybe(spec.elementwise(), "shift", spec.shift, "s of derf, elementwise kinds only");
  v.maybe("source", details.source,
          "where --gain names a tensor of a model: its norm, and the options whose values are taken from it");
  v("axes", rows_of(details.axes), "the longest axes as unit vectors, at most as many as --axes asks for");
  v.maybe(details.null_space.has_value(), "null_space", rows_of(or_empty(details.null_space)),
          "orthonormal basis, with --null-space");
  const analysis::ParameterStatistics& gain = or_empty(details.gain);
  v.maybe(details.gain.has_value(), "gain", object([&](auto& parts) {
            parts("min", gain.min);
            parts("max", gain.max);
            parts("mean", gain.mean);
            parts("median_abs", gain.median_abs, "median of the absolute values");
            parts("negative", gain.negative);
            parts("zero", gain.zero);
          }),
          "statistics of the gain as used, where one is given");
  v.maybe(!spec.bias.empty(), "shift_over_radius", norm::shift_over_radius(spec),
          "length of the bias over rms_radius, where there is a bias; null where the image is a point, "
          "and beyond the range of float64");
  const GainComparison& compared = or_empty(details.compared);
  v.maybe(details.compared.has_value(), "similarity", compared.similarity,
          "tr(AB)/√(tr A² tr B²) of the image matrices, with --similar-to");
  v.maybe(details.compared.has_value(), "top_axis_cosine", compared.top_axis_cosine,
          "cosine of the two longest axes, with --similar-to");
}

Json geometry(const NormSpec& spec, const norm::NormImage& image, const GeometryDetails& details) {
  return json_of(GeometryFields{spec, image, details});
}
Json describe_geometry(SchemaMaker& maker) {
  const NormSpec spec{.kind = NormKind::layer, .width = 2};
  return maker.schema_of(GeometryFields{spec, norm::NormImage(spec), {}});
}

template <class V>
void fields(V& v, const Applied& result) {
  begin(v, "apply");
  v("output", text_or_null(result.output), "the file; null where the first rows are printed instead");
  v("dtype", to_string(result.dtype));
  v("rows", result.rows);
  v("width", result.width);
  v("source", result.source, about_source);
}

Json applied(const Applied& result) { return json_of(result); }
Json describe_apply(SchemaMaker& maker) { return maker.schema_of(Applied{}); }

template <class V>
void fields(V& v, const norm::GroupCurvature& curvature) {
  v("k", positive(curvature.groups), "group count");
  v("mean", finite_or_null(curvature.mean),
    "mean of the Hessian measure over the rows that count; null where no row counts, and beyond the "
    "range of float64");
  v("ratio", finite_or_null(curvature.ratio),
    "mean over rows of the measure over that of one group at the same row");
  v("min", finite_or_null(curvature.least), "of that ratio");
  v("max", finite_or_null(curvature.largest), "of that ratio");
  v("bound", curvature.bound,
    "proved lower bound of the ratio; null where there is none: eps > 0, gains of unequal size, groups "
    "too small");
  v("rows", curvature.rows,
    "rows that count: the norm is twice differentiable there, and not linear in one group");
}

struct CurvatureFields {
  const NormSpec& spec;
  std::size_t rows;
  const std::vector<norm::GroupCurvature>& groups;
  const std::optional<NormSource>& source;
};

template <class V>
void fields(V& v, const CurvatureFields& x) {
  begin(v, "curvature");
  v("norm", x.spec.kind);
  v("width", positive(x.spec.width));
  v("rows", positive(x.rows));
  v("eps", not_negative(x.spec.eps));
  v("groups", x.groups, "one entry per group count, in the order requested");
  v("source", x.source, about_source);
}

Json curvature(const NormSpec& spec, std::size_t rows, const std::vector<norm::GroupCurvature>& groups,
               const std::optional<NormSource>& source) {
  return json_of(CurvatureFields{spec, rows, groups, source});
}
Json describe_curvature(SchemaMaker& maker) { return maker.schema_of(CurvatureFields{{}, 1, {}, {}}); }

}  // namespace normscope::results
