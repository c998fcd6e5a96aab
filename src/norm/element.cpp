#include <normscope/norm/element.hpp>

#include <cmath>
#include <cstring>

namespace normscope::norm {
namespace {

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float of_bits(std::uint32_t bits) {
  float value = 0.0F;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

float to_float(Bfloat16 value) { return of_bits(static_cast<std::uint32_t>(value.bits) << 16U); }

float to_float(Float16 value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16U;
  const std::uint32_t size = (value.bits & 0x7FFFU) << 13U;
  if (size >= 0x0F800000U) return of_bits(sign | 0x7F800000U | size);
  return of_bits(sign | bits_of(of_bits(size) * 0x1p112F));
}

Bfloat16 to_bfloat16(float value) {
  const std::uint32_t bits = bits_of(value);
  if (std::isnan(value)) return {static_cast<std::uint16_t>((bits | 0x00400000U) >> 16U)};
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U)};
}

Float16 to_float16(float value) {
  const std::uint32_t sign = (bits_of(value) >> 16U) & 0x8000U;
  const float size = std::abs(value);
  std::uint32_t half = 0;
  if (std::isnan(value)) {
    half = 0x7E00U;
  } else if (size >= 65520.0F) {
    half = 0x7C00U;
  } else if (size < 0x1p-14F) {
    // The addition leaves the bits of the subnormal, correctly rounded.
    half = bits_of(size + 0.5F) - bits_of(0.5F);
  } else {
    const std::uint32_t bits = bits_of(size);
    half = (bits - (112U << 23U) + 0xFFFU + ((bits >> 13U) & 1U)) >> 13U;
  }
  return {static_cast<std::uint16_t>(sign | half)};
}

}  // namespace normscope::norm
