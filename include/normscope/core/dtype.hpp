#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace normscope
