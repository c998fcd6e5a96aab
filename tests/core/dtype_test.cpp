#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/dtype.hpp>
#include <normscope/core/rounding.hpp>

namespace normscope {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <typename Stored>
double decoded(Dtype dtype, Stored stored) {
  std::byte bytes[sizeof stored];
  std::memcpy(bytes, &stored, sizeof stored);
  double value = 0.0;
  decode(dtype, bytes, {&value, 1});
  return value;
}

std::uint16_t encoded(Dtype dtype, double value) {
  std::byte bytes[2];
  encode(dtype, {&value, 1}, bytes);
  std::uint16_t code;
  std::memcpy(&code, bytes, sizeof code);
  return code;
}

/// A float format by its definition: (-1)^s · 2^(max(e, 1) - bias) · (m / 2^mantissa_bits + [e > 0]).
struct Format {
  Dtype dtype;
  int exponent_bits;
  int mantissa_bits;
  int bias;

  [[nodiscard]] double value(unsigned code) const {
    const unsigned mantissa = code % (1u << mantissa_bits);
    const unsigned exponent = (code >> mantissa_bits) % (1u << exponent_bits);
    const bool negative = (code >> (mantissa_bits + exponent_bits)) != 0;
    const double fraction = mantissa / std::pow(2.0, mantissa_bits) + (exponent > 0 ? 1.0 : 0.0);
    const double magnitude = std::pow(2.0, (exponent > 0 ? static_cast<int>(exponent) : 1) - bias) * fraction;
    return negative ? -magnitude : magnitude;
  }
  /// As `value`, with the top exponent kept for infinity and NaN.
  [[nodiscard]] double ieee_value(unsigned code) const {
    const unsigned top = (1u << exponent_bits) - 1;
    if ((code >> mantissa_bits) % (1u << exponent_bits) != top) return value(code);
    if (code % (1u << mantissa_bits) != 0) return not_a_number;
    return (code >> (mantissa_bits + exponent_bits)) != 0 ? -infinity : infinity;
  }
};

constexpr Format f16{Dtype::F16, 5, 10, 15};
constexpr Format bf16{Dtype::BF16, 8, 7, 127};
constexpr Format e4m3{Dtype::F8_E4M3, 4, 3, 7};
constexpr Format e5m2{Dtype::F8_E5M2, 5, 2, 15};
constexpr Format e4m3fnuz{Dtype::F8_E4M3FNUZ, 4, 3, 8};
constexpr Format e5m2fnuz{Dtype::F8_E5M2FNUZ, 5, 2, 16};

void expect_same(double actual, double expected, const std::string& what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(actual)) << what << " is " << actual;
  } else {
    EXPECT_EQ(actual, expected) << what;
    EXPECT_EQ(std::signbit(actual), std::signbit(expected)) << what;
  }
}

TEST(Dtype, DecodesEverySixteenBitFloat) {
  for (const Format& format : {f16, bf16}) {
    for (unsigned code = 0; code < 0x10000; ++code) {
      expect_same(decoded(format.dtype, static_cast<std::uint16_t>(code)), format.ieee_value(code),
                  std::string(to_string(format.dtype)) + " code " + std::to_string(code));
    }
  }
}

TEST(Dtype, DecodesEveryEightBitFloat) {
  for (unsigned code = 0; code < 0x100; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    const std::string what = "code " + std::to_string(code);
    expect_same(decoded(Dtype::F8_E5M2, byte), e5m2.ieee_value(code), "E5M2 " + what);
    expect_same(decoded(Dtype::F8_E4M3, byte), code % 0x80 == 0x7f ? not_a_number : e4m3.value(code),
                "E4M3 " + what);
    expect_same(decoded(Dtype::F8_E4M3FNUZ, byte), code == 0x80 ? not_a_number : e4m3fnuz.value(code),
                "E4M3FNUZ " + what);
    expect_same(decoded(Dtype::F8_E5M2FNUZ, byte), code == 0x80 ? not_a_number : e5m2fnuz.value(code),
                "E5M2FNUZ " + what);
  }
}

TEST(Dtype, KnowsTheLargestEightBitFloats) {
  EXPECT_EQ(decoded<std::uint8_t>(Dtype::F8_E4M3, 0x7e), 448.0);
  EXPECT_EQ(decoded<std::uint8_t>(Dtype::F8_E5M2, 0x7b), 57344.0);
  EXPECT_EQ(decoded<std::uint8_t>(Dtype::F8_E4M3FNUZ, 0x7f), 240.0);
  EXPECT_EQ(decoded<std::uint8_t>(Dtype::F8_E5M2FNUZ, 0x7f), 57344.0);
}

TEST(Dtype, DecodesEveryNarrowInteger) {
  for (int value = -0x8000; value < 0x8000; ++value) {
    EXPECT_EQ(decoded(Dtype::I16, static_cast<std::int16_t>(value)), value);
    EXPECT_EQ(decoded(Dtype::U16, static_cast<std::uint16_t>(value + 0x8000)), value + 0x8000);
  }
  for (int value = -0x80; value < 0x80; ++value) {
    EXPECT_EQ(decoded(Dtype::I8, static_cast<std::int8_t>(value)), value);
    EXPECT_EQ(decoded(Dtype::U8, static_cast<std::uint8_t>(value + 0x80)), value + 0x80);
    EXPECT_EQ(decoded(Dtype::BOOL, static_cast<std::uint8_t>(value)), value == 0 ? 0 : 1);
  }
}

TEST(Dtype, DecodesWideIntegersToTheNearestDouble) {
  EXPECT_EQ(decoded(Dtype::I32, std::numeric_limits<std::int32_t>::min()), -2147483648.0);
  EXPECT_EQ(decoded(Dtype::U32, std::numeric_limits<std::uint32_t>::max()), 4294967295.0);
  EXPECT_EQ(decoded(Dtype::I64, (std::int64_t{1} << 53) - 1), 9007199254740991.0);
  EXPECT_EQ(decoded(Dtype::I64, (std::int64_t{1} << 53) + 1), 9007199254740992.0);
  EXPECT_EQ(decoded(Dtype::I64, std::numeric_limits<std::int64_t>::min()), -0x1p63);
  EXPECT_EQ(decoded(Dtype::U64, std::numeric_limits<std::uint64_t>::max()), 0x1p64);
}

TEST(Dtype, DecodesFromAnyByteAddress) {
  const float stored[] = {1.5f, -2.25f, 0x1p-149f};
  std::byte buffer[sizeof stored + 1];
  std::memcpy(buffer + 1, stored, sizeof stored);
  double values[3];
  decode(Dtype::F32, std::span(buffer).subspan(1), values);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(values[i], stored[i]);
}

TEST(Dtype, EncodesWhatItDecodes) {
  for (const Format& format : {f16, bf16}) {
    for (unsigned code = 0; code < 0x10000; ++code) {
      const double value = format.ieee_value(code);
      const std::uint16_t again = encoded(format.dtype, value);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(format.ieee_value(again))) << code;
      } else {
        EXPECT_EQ(again, code) << to_string(format.dtype);
      }
    }
  }
}

TEST(Dtype, EncodesToNearestWithTiesToEven) {
  for (const Format& format : {f16, bf16}) {
    const unsigned infinity_code = ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
    for (unsigned low = 0; low < infinity_code; ++low) {
      const unsigned high = low + 1;
      // Past the largest number, halfway is to where the next would be.
      const double halfway = (format.value(low) + format.value(high)) / 2;
      const unsigned even = low % 2 == 0 ? low : high;
      const std::string what = std::string(to_string(format.dtype)) + " above " + std::to_string(low);
      EXPECT_EQ(encoded(format.dtype, halfway), even) << what;
      EXPECT_EQ(encoded(format.dtype, std::nextafter(halfway, infinity)), high) << what;
      EXPECT_EQ(encoded(format.dtype, std::nextafter(halfway, 0.0)), low) << what;
      EXPECT_EQ(encoded(format.dtype, -halfway), even | 0x8000u) << what;
    }
  }
}

TEST(Dtype, EncodesBeyondTheRangeAsInfinity) {
  for (const double value : {65520.0, 1e6, 1e300, infinity}) {
    EXPECT_EQ(encoded(Dtype::F16, value), 0x7c00) << value;
    EXPECT_EQ(encoded(Dtype::F16, -value), 0xfc00) << value;
  }
  EXPECT_EQ(encoded(Dtype::BF16, 3.4e38), 0x7f80);
  EXPECT_EQ(encoded(Dtype::F16, std::numeric_limits<double>::denorm_min()), 0);
}

TEST(Dtype, NamesRoundTrip) {
  for (int i = 0; i <= static_cast<int>(Dtype::U64); ++i) {
    EXPECT_EQ(dtype(to_string(static_cast<Dtype>(i))), static_cast<Dtype>(i));
  }
  EXPECT_EQ(to_string(Dtype::U64), "U64");
  EXPECT_EQ(dtype("F8_E8M0"), Dtype::F8_E8M0);
  EXPECT_EQ(dtype("f32"), std::nullopt);
  EXPECT_EQ(dtype(""), std::nullopt);
}

TEST(Dtype, KindsFollowTheNames) {
  for (int i = 0; i <= static_cast<int>(Dtype::U64); ++i) {
    const auto type = static_cast<Dtype>(i);
    const std::string name(to_string(type));
    const bool scale = type == Dtype::F8_E8M0;
    EXPECT_EQ(is_floating(type), (name[0] == 'F' || name == "BF16") && !scale) << name;
    const bool packed = type == Dtype::F4 || type == Dtype::F6_E2M3 || type == Dtype::F6_E3M2;
    EXPECT_EQ(is_decodable(type), !scale && !packed && type != Dtype::C64) << name;
  }
}

TEST(Dtype, WideNumbersKeepTheirBits) {
  for (const double value : {0.1, -1e300, std::numeric_limits<double>::denorm_min()}) {
    std::byte bytes[8];
    encode(Dtype::F64, {&value, 1}, bytes);
    double back = 0.0;
    decode(Dtype::F64, bytes, {&back, 1});
    EXPECT_EQ(back, value);
    encode(Dtype::F32, {&value, 1}, std::span(bytes).first(4));
    decode(Dtype::F32, std::span(bytes).first(4), {&back, 1});
    EXPECT_EQ(back, static_cast<double>(static_cast<float>(value)));
  }
}

TEST(Dtype, SizesFollowTheNames) {
  for (int i = 0; i <= static_cast<int>(Dtype::U64); ++i) {
    const auto type = static_cast<Dtype>(i);
    if (type == Dtype::BOOL) continue;
    const std::string name(to_string(type));
    const std::size_t digits = name.find_first_of("0123456789");
    EXPECT_EQ(bits(type), std::stoul(name.substr(digits))) << name;
  }
  EXPECT_EQ(bits(Dtype::BOOL), 8u);
}

}  // namespace
}  // namespace normscope
