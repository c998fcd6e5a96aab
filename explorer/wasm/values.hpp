#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <emscripten/val.h>

#include <normscope/core/error.hpp>
#include <normscope/core/norm_spec.hpp>
#include <normscope/core/view.hpp>

/// Between JavaScript's values and the core's. Matrices are flat Float64Arrays, row-major; everything else is
/// plain numbers, strings and objects. What comes back is a copy, which the caller owns.
namespace normscope::wasm {

using emscripten::val;

[[nodiscard]] std::vector<double> numbers(const val& array);
[[nodiscard]] val float64_array(std::span<const double> values);
[[nodiscard]] val float32_array(std::span<const double> values);
[[nodiscard]] val int32_array(std::span<const std::int32_t> values);

/// {kind, width, groups?, eps?, gain?, bias?} as a norm.
[[nodiscard]] NormSpec norm_spec(const val& spec);

/// The value of `name` in `object`, or `fallback` where there is none.
template <typename T>
[[nodiscard]] T get(const val& object, const char* name, T fallback) {
  const val value = object[name];
  return value.isUndefined() || value.isNull() ? fallback : value.as<T>();
}

[[nodiscard]] inline std::size_t size(const val& object, const char* name, std::size_t fallback = 0) {
  return static_cast<std::size_t>(get<double>(object, name, static_cast<double>(fallback)));
}

/// Throws what went wrong as a JavaScript Error of that message.
[[noreturn]] void throw_error(const std::string& message);

/// Calls `body`; what the core throws becomes a JavaScript Error.
template <typename Body>
auto guarded(Body&& body) {
  std::string message;
  try {
    return body();
  } catch (const std::exception& error) {
    message = error.what();
  }
  throw_error(message);
}

}  // namespace normscope::wasm
