#include <emscripten/bind.h>

#include <normscope/nets/circle.hpp>

#include "values.hpp"

namespace normscope::wasm {
namespace {

nets::Move move_of(const std::string& name) {
  if (name == "stretch") return nets::Move::stretch;
  if (name == "shift") return nets::Move::shift;
  throw Error(ErrorCode::Argument, "fold: there is no move " + name);
}

/// Points (rows, 2) after a move, and where u takes them: {moved, landed}.
val move(const std::string& name, double t, double eps, const val& points) {
  return guarded([&] {
    const std::vector<double> x = numbers(points);
    const std::size_t rows = x.size() / 2;
    const std::vector<double> there = nets::moved(move_of(name), t, {x.data(), rows, 2});
    val result = val::object();
    result.set("moved", float64_array(there));
    result.set("landed", float64_array(nets::normalized({there.data(), rows, 2}, eps)));
    return result;
  });
}

/// The first coordinate after a move of each first coordinate on the circle.
val curve(const std::string& name, double t, double eps, const val& xs) {
  return guarded([&] {
    std::vector<double> values = numbers(xs);
    const bool stretch = move_of(name) == nets::Move::stretch;
    for (double& x : values) x = stretch ? nets::stretched(t, x, eps) : nets::folded(t, x, eps);
    return float64_array(values);
  });
}

/// Heights of the surface over points (rows, 2).
val surface(double eps, const val& points) {
  const std::vector<double> x = numbers(points);
  std::vector<double> heights;
  for (std::size_t i = 0; i + 1 < x.size(); i += 2) heights.push_back(nets::surface(x[i], x[i + 1], eps));
  return float64_array(heights);
}

double share(double t, double level) { return nets::stretched_share(t, level); }

/// {winding, speed, minimum}; null where there is none.
val fold_facts(double t) {
  val result = val::object();
  result.set("winding", t == 1.0 ? val::null() : val(nets::fold_winding(t)));
  result.set("speed", t == 1.0 ? val::null() : val(nets::fold_speed(t)));
  result.set("minimum", t > 1.0 ? val(nets::fold_minimum(t)) : val::null());
  return result;
}

}  // namespace

EMSCRIPTEN_BINDINGS(fold) {
  emscripten::function("foldMove", &move);
  emscripten::function("foldCurve", &curve);
  emscripten::function("foldSurface", &surface);
  emscripten::function("foldShare", &share);
  emscripten::function("foldFacts", &fold_facts);
}

}  // namespace normscope::wasm
