#include "values.hpp"

#include <cmath>

namespace normscope::wasm {
namespace {

/// A typed array of its own, not one that looks into the core's memory.
template <typename T>
val typed_array(const char* type, const std::vector<T>& values) {
  return val::global(type).new_(val(emscripten::typed_memory_view(values.size(), values.data())));
}

}  // namespace

std::vector<double> numbers(const val& array) {
  return array.isUndefined() || array.isNull() ? std::vector<double>()
                                               : emscripten::convertJSArrayToNumberVector<double>(array);
}

val float64_array(std::span<const double> values) {
  return typed_array("Float64Array", std::vector<double>(values.begin(), values.end()));
}

val float32_array(std::span<const double> values) {
  return typed_array("Float32Array", std::vector<float>(values.begin(), values.end()));
}

val int32_array(std::span<const std::int32_t> values) {
  return typed_array("Int32Array", std::vector<std::int32_t>(values.begin(), values.end()));
}

NormSpec norm_spec(const val& spec) {
  NormSpec result{.kind = norm_kind(get<std::string>(spec, "kind", "layer")),
                  .width = size(spec, "width"),
                  .groups = size(spec, "groups", 1),
                  .eps = get<double>(spec, "eps", 0.0),
                  .gain = numbers(spec["gain"]),
                  .bias = numbers(spec["bias"]),
                  .alpha = get<double>(spec, "alpha", 1.0),
                  .shift = get<double>(spec, "shift", 0.0)};
  validate(result);
  return result;
}

void throw_error(const std::string& message) { val::global("Error").new_(message).throw_(); }

}  // namespace normscope::wasm
