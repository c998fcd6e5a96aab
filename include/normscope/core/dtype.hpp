#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace normscope {

/// Element types of checkpoints, named as in the safetensors format. All are little-endian. F4, F6, F8_E8M0
/// and C64 can be stored and sized, but not decoded.
enum class Dtype : std::uint8_t {
  BOOL,
  F4,
  F6_E2M3,
  F6_E3M2,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  F8_E8M0,
  F8_E4M3FNUZ,
  F8_E5M2FNUZ,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64,
};

/// Bits per element; below 8 for the sub-byte types.
[[nodiscard]] std::size_t bits(Dtype dtype);
/// The format's own name, such as "BF16".
[[nodiscard]] std::string_view to_string(Dtype dtype);
/// The type of that name; empty if there is none.
[[nodiscard]] std::optional<Dtype> dtype(std::string_view name);
/// Whether `decode` supports it.
[[nodiscard]] bool is_decodable(Dtype dtype);
/// Whether it is one of the floating-point types that can hold a weight.
[[nodiscard]] bool is_floating(Dtype dtype);

/// Converts elements to float64. Exact for every type except I64 and U64, which round to nearest beyond 2^53.
///
/// Requires  is_decodable(dtype); bytes.size() * 8 == values.size() * bits(dtype)
void decode(Dtype dtype, std::span<const std::byte> bytes, std::span<double> values);

/// Float64 values as elements of `dtype`, rounded to nearest, ties to even; a value beyond the
/// type's range becomes its infinity.
///
/// Requires  dtype is F64, F32, F16 or BF16; bytes.size() * 8 == values.size() * bits(dtype)
void encode(Dtype dtype, std::span<const double> values, std::span<std::byte> bytes);

// Conversions of the two 16-bit floating-point formats: float16 (IEEE binary16, 10 bits of mantissa) and
// bfloat16 (the upper half of a float32, 7 bits). Portable, so that the browser computes the same bits, and
// without branches where arrays are decoded, so that compilers vectorize them.
//
// Accuracy  tests: Dtype.DecodesEverySixteenBitFloat, Dtype.EncodesToNearestWithTiesToEven

namespace detail {

template <typename To, typename From>
inline To reinterpret(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

/// The nearest code of an IEEE-like format of 16 bits, ties to even.
template <int mantissa_bits>
inline std::uint16_t encode_16(double value) {
  constexpr int exponent_bits = 15 - mantissa_bits;
  constexpr std::uint64_t bias = (std::uint64_t{1} << (exponent_bits - 1)) - 1;
  constexpr std::uint64_t infinity = ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
  constexpr int shift = 52 - mantissa_bits;
  constexpr std::uint64_t exponent_shift = (1023 - bias) << 52;
  constexpr std::uint64_t smallest_normal = exponent_shift + (std::uint64_t{1} << 52);

  const auto bits = reinterpret<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 63 << 15);
  const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
  std::uint64_t code;
  if (magnitude > 0x7ff0000000000000u) {
    code = infinity | (std::uint64_t{1} << (mantissa_bits - 1));
  } else if (magnitude >= smallest_normal) {
    const std::uint64_t wide = magnitude - exponent_shift;
    const std::uint64_t half_less_tie = (std::uint64_t{1} << (shift - 1)) - 1 + (wide >> shift & 1);
    code = (wide + half_less_tie) >> shift;
    if (code > infinity) code = infinity;
  } else {
    // In units of the smallest subnormal; a round up to 2^mantissa_bits is the smallest normal's code.
    constexpr int unit = 1 - static_cast<int>(bias) - mantissa_bits;
    code = static_cast<std::uint64_t>(std::nearbyint(std::ldexp(std::fabs(value), -unit)));
  }
  return static_cast<std::uint16_t>(sign | code);
}

}  // namespace detail

/// The value of a float16, exact.
[[nodiscard]] inline float decode_float16(std::uint16_t code) {
  const std::uint32_t magnitude = (code & 0x7fffu) << 13;
  // Read as float, the shifted bits are 2^-112 times the value, subnormals included.
  const float scaled = detail::reinterpret<float>(magnitude) * 0x1p112f;
  const std::uint32_t special = magnitude | 0x7f800000u;
  const std::uint32_t absolute =
      magnitude >= (0x7c00u << 13) ? special : detail::reinterpret<std::uint32_t>(scaled);
  return detail::reinterpret<float>(absolute | (code & 0x8000u) << 16);
}

/// The value of a bfloat16, exact.
[[nodiscard]] inline float decode_bfloat16(std::uint16_t code) {
  return detail::reinterpret<float>(static_cast<std::uint32_t>(code) << 16);
}

/// The nearest float16, ties to even; infinite beyond the type's range. NaN becomes the quiet NaN of its
/// sign.
[[nodiscard]] inline std::uint16_t encode_float16(double value) { return detail::encode_16<10>(value); }

/// The nearest bfloat16, likewise.
[[nodiscard]] inline std::uint16_t encode_bfloat16(double value) { return detail::encode_16<7>(value); }

}  // namespace normscope
