#include <emscripten/bind.h>

#include <normscope/core/random.hpp>

#include "values.hpp"

namespace normscope::wasm {
namespace {

/// `count` independent standard normal numbers, the same ones for the same seed everywhere.
val normals(double count, double seed) {
  Random random(static_cast<std::uint64_t>(seed));
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = random.normal();
  return float64_array(values);
}

}  // namespace

EMSCRIPTEN_BINDINGS(random) { emscripten::function("normals", &normals); }

}  // namespace normscope::wasm
