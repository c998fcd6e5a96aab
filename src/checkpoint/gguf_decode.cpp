#include "gguf_decode.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#include <normscope/core/float16.hpp>

namespace normscope::checkpoint {
namespace {

constexpr int small = 32;   ///< elements of a block
constexpr int large = 256;  ///< elements of a super-block
constexpr int scaled = 16;  ///< elements that share a scale in Q2_K, Q3_K and Q6_K

/// The values of the codes of IQ4_NL and IQ4_XS.
constexpr std::array<std::int8_t, 16> nonlinear = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                   1,    13,   25,  38,  53,  69,  89,  113};

int byte_at(const std::byte* from) { return std::to_integer<int>(*from); }

float half_at(const std::byte* from) {
  std::uint16_t code;
  std::memcpy(&code, from, sizeof code);
  return decode_float16(code);
}

/// Code `index` of a block whose lower nibbles are its first half.
int nibble(const std::byte* codes, int index) {
  const int half = small / 2;
  return index < half ? byte_at(codes + index) & 15 : byte_at(codes + index - half) >> 4;
}

/// The fifth bits of a block's codes.
std::uint32_t fifth_bits(const std::byte* from) {
  std::uint32_t bits;
  std::memcpy(&bits, from, sizeof bits);
  return bits;
}

int five_bits(const std::byte* codes, std::uint32_t fifth, int index) {
  return nibble(codes, index) | static_cast<int>(fifth >> index & 1) << 4;
}

/// Scale and minimum of one of the eight parts of a Q4_K or Q5_K block: 6 bits each, packed into 12 bytes.
struct ScaleMinimum {
  int scale;
  int minimum;
};

ScaleMinimum scale_minimum(const std::byte* packed, int part) {
  if (part < 4) return {byte_at(packed + part) & 63, byte_at(packed + part + 4) & 63};
  const int low = byte_at(packed + part + 4);
  return {(low & 15) | (byte_at(packed + part - 4) >> 6) << 4, low >> 4 | (byte_at(packed + part) >> 6) << 4};
}

/// One of 16 scales of a Q3_K block: 6 bits each, packed into 12 bytes.
int q3_scale(const std::byte* packed, int part) {
  const int low = part < 8 ? byte_at(packed + part) & 15 : byte_at(packed + part - 8) >> 4;
  return (low | (byte_at(packed + 8 + part % 4) >> 2 * (part / 4) & 3) << 4) - 32;
}

/// Two bits of an element of 256, four of which share a byte: elements 32 apart, in runs of 128.
int two_bits(const std::byte* codes, int index) {
  return byte_at(codes + index / 128 * 32 + index % 32) >> 2 * (index % 128 / 32) & 3;
}

}  // namespace

void decode_q4_0(const std::byte* block, float* values) {
  const float scale = half_at(block);
  for (int i = 0; i < small; ++i) values[i] = scale * static_cast<float>(nibble(block + 2, i) - 8);
}

void decode_q4_1(const std::byte* block, float* values) {
  const float scale = half_at(block);
  const float minimum = half_at(block + 2);
  for (int i = 0; i < small; ++i) values[i] = scale * static_cast<float>(nibble(block + 4, i)) + minimum;
}

void decode_q5_0(const std::byte* block, float* values) {
  const float scale = half_at(block);
  const std::uint32_t fifth = fifth_bits(block + 2);
  for (int i = 0; i < small; ++i) {
    values[i] = scale * static_cast<float>(five_bits(block + 6, fifth, i) - 16);
  }
}

void decode_q5_1(const std::byte* block, float* values) {
  const float scale = half_at(block);
  const float minimum = half_at(block + 2);
  const std::uint32_t fifth = fifth_bits(block + 4);
  for (int i = 0; i < small; ++i) {
    values[i] = scale * static_cast<float>(five_bits(block + 8, fifth, i)) + minimum;
  }
}

void decode_q8_0(const std::byte* block, float* values) {
  const float scale = half_at(block);
  for (int i = 0; i < small; ++i) {
    values[i] = scale * static_cast<float>(static_cast<std::int8_t>(byte_at(block + 2 + i)));
  }
}

void decode_q2_k(const std::byte* block, float* values) {
  const float scale = half_at(block + 80);
  const float minimum = half_at(block + 82);
  for (int i = 0; i < large; ++i) {
    const int both = byte_at(block + i / scaled);
    values[i] = scale * static_cast<float>(both & 15) * static_cast<float>(two_bits(block + 16, i)) -
                minimum * static_cast<float>(both >> 4);
  }
}

void decode_q3_k(const std::byte* block, float* values) {
  const float scale = half_at(block + 108);
  for (int i = 0; i < large; ++i) {
    const bool third_bit = (byte_at(block + i % 32) >> i / 32 & 1) != 0;
    const int code = two_bits(block + 32, i) - (third_bit ? 0 : 4);
    values[i] = scale * static_cast<float>(q3_scale(block + 96, i / scaled)) * static_cast<float>(code);
  }
}

void decode_q4_k(const std::byte* block, float* values) {
  const float scale = half_at(block);
  const float minimum = half_at(block + 2);
  for (int i = 0; i < large; ++i) {
    const ScaleMinimum part = scale_minimum(block + 4, i / 32);
    const int code = byte_at(block + 16 + i / 64 * 32 + i % 32) >> i % 64 / 32 * 4 & 15;
    values[i] = scale * static_cast<float>(part.scale) * static_cast<float>(code) -
                minimum * static_cast<float>(part.minimum);
  }
}

void decode_q5_k(const std::byte* block, float* values) {
  const float scale = half_at(block);
  const float minimum = half_at(block + 2);
  for (int i = 0; i < large; ++i) {
    const ScaleMinimum part = scale_minimum(block + 4, i / 32);
    const int low = byte_at(block + 48 + i / 64 * 32 + i % 32) >> i % 64 / 32 * 4 & 15;
    const int code = low | (byte_at(block + 16 + i % 32) >> i / 32 & 1) << 4;
    values[i] = scale * static_cast<float>(part.scale) * static_cast<float>(code) -
                minimum * static_cast<float>(part.minimum);
  }
}

void decode_q6_k(const std::byte* block, float* values) {
  const float scale = half_at(block + 208);
  for (int i = 0; i < large; ++i) {
    const int low = byte_at(block + i / 128 * 64 + i % 64) >> i % 128 / 64 * 4 & 15;
    const int code = (low | two_bits(block + 128, i) << 4) - 32;
    const auto part = static_cast<std::int8_t>(byte_at(block + 192 + i / scaled));
    values[i] = scale * static_cast<float>(part) * static_cast<float>(code);
  }
}

void decode_iq4_nl(const std::byte* block, float* values) {
  const float scale = half_at(block);
  for (int i = 0; i < small; ++i) {
    values[i] = scale * static_cast<float>(nonlinear[static_cast<std::size_t>(nibble(block + 2, i))]);
  }
}

void decode_iq4_xs(const std::byte* block, float* values) {
  const float scale = half_at(block);
  const int high = byte_at(block + 2) | byte_at(block + 3) << 8;
  for (int part = 0; part < large / small; ++part) {
    const int low = byte_at(block + 4 + part / 2) >> part % 2 * 4 & 15;
    const int factor = (low | (high >> 2 * part & 3) << 4) - 32;
    for (int i = 0; i < small; ++i) {
      const int code = nibble(block + 8 + part * small / 2, i);
      values[part * small + i] =
          scale * static_cast<float>(factor) * static_cast<float>(nonlinear[static_cast<std::size_t>(code)]);
    }
  }
}

}  // namespace normscope::checkpoint
