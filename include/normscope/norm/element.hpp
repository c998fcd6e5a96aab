#pragma once

#include <cstdint>

#include <normscope/core/dtype.hpp>

/// Element types of activations besides float and double. They only store bits: kernels compute in `Wide<T>`
/// and round the result once, to nearest, ties to even; values beyond the type's range become infinite.
namespace normscope::norm {

/// The upper half of a float32.
struct Bfloat16 {
  std::uint16_t bits = 0;
};

/// IEEE binary16.
struct Float16 {
  std::uint16_t bits = 0;
};

/// A class for each type, since g++ and clang++ give different symbols to functions whose signatures contain
/// an expression such as is_same_v, and a program may be linked to a library that the other one has compiled.
template <typename T>
struct WideOf {
  using type = float;
};
template <>
struct WideOf<double> {
  using type = double;
};

/// The type of statistics, gains, biases and their gradients for rows of T.
template <typename T>
using Wide = typename WideOf<T>::type;

/// Converts `value` exactly.
[[nodiscard]] inline float to_float(Bfloat16 value) { return decode_bfloat16(value.bits); }
[[nodiscard]] inline float to_float(Float16 value) { return decode_float16(value.bits); }

/// The nearest element; NaN stays NaN.
[[nodiscard]] inline Bfloat16 to_bfloat16(float value) { return {encode_bfloat16(value)}; }
[[nodiscard]] inline Float16 to_float16(float value) { return {encode_float16(value)}; }

}  // namespace normscope::norm
