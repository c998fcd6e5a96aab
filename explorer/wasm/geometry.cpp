#include <emscripten/bind.h>

#include <normscope/norm/image.hpp>
#include <normscope/norm/norm.hpp>

#include "values.hpp"

namespace normscope::wasm {
namespace {

/// Rows after each of the four steps: [project, scale, stretch, shift], each (rows, width).
val steps(const val& spec, const val& points) {
  return guarded([&] {
    const NormSpec norm = norm_spec(spec);
    std::vector<double> values = numbers(points);
    if (values.size() % norm.width != 0) throw Error(ErrorCode::Shape, "points: expected whole rows");
    const MatrixView<double> rows(values.data(), values.size() / norm.width, norm.width);
    val result = val::array();
    for (const norm::Step step :
         {norm::Step::project, norm::Step::scale, norm::Step::stretch, norm::Step::shift}) {
      norm::apply(step, norm, rows, rows);
      result.call<void>("push", float64_array(values));
    }
    return result;
  });
}

/// {semiAxes, axes (count, width), nullSpace (dim, width), condition, radius}
val image(const val& spec) {
  return guarded([&] {
    const NormSpec norm = norm_spec(spec);
    const norm::NormImage found(norm);
    std::vector<double> axes(found.semi_axes().size() * norm.width);
    found.axes(0, {axes.data(), found.semi_axes().size(), norm.width});
    std::vector<double> erased(found.null_space_dim() * norm.width);
    found.null_space({erased.data(), found.null_space_dim(), norm.width});
    val result = val::object();
    result.set("semiAxes", float64_array(found.semi_axes()));
    result.set("axes", float64_array(axes));
    result.set("nullSpace", float64_array(erased));
    result.set("condition", found.condition());
    result.set("radius", norm.radius());
    return result;
  });
}

}  // namespace

EMSCRIPTEN_BINDINGS(geometry) {
  emscripten::function("geometrySteps", &steps);
  emscripten::function("geometryImage", &image);
}

}  // namespace normscope::wasm
