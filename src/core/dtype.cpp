#include <normscope/core/dtype.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <normscope/core/error.hpp>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are copied as they lie in the file");

namespace normscope {
namespace {

struct DtypeFacts {
  std::string_view name;
  std::size_t bits;
  bool is_decodable = true;
  bool is_floating = false;
};

// In the order of the enumeration.
constexpr std::array<DtypeFacts, 22> dtype_facts = {{
    {"BOOL", 8},
    {"F4", 4, false, true},
    {"F6_E2M3", 6, false, true},
    {"F6_E3M2", 6, false, true},
    {"U8", 8},
    {"I8", 8},
    {"F8_E5M2", 8, true, true},
    {"F8_E4M3", 8, true, true},
    {"F8_E8M0", 8, false, false},
    {"F8_E4M3FNUZ", 8, true, true},
    {"F8_E5M2FNUZ", 8, true, true},
    {"I16", 16},
    {"U16", 16},
    {"F16", 16, true, true},
    {"BF16", 16, true, true},
    {"I32", 32},
    {"U32", 32},
    {"F32", 32, true, true},
    {"C64", 64, false, false},
    {"F64", 64, true, true},
    {"I64", 64},
    {"U64", 64},
}};

const DtypeFacts& facts(Dtype dtype) { return dtype_facts[static_cast<std::size_t>(dtype)]; }

// The loops read through memcpy because a tensor may start at any byte; compilers still vectorize.
template <typename Stored, typename Convert>
void decode_each(std::span<const std::byte> bytes, std::span<double> values, Convert convert) {
  const std::byte* from = bytes.data();
  double* to = values.data();
  const std::size_t count = values.size();
  for (std::size_t i = 0; i < count; ++i) {
    Stored stored;
    std::memcpy(&stored, from + i * sizeof stored, sizeof stored);
    to[i] = convert(stored);
  }
}

template <typename Stored>
void decode_number(std::span<const std::byte> bytes, std::span<double> values) {
  decode_each<Stored>(bytes, values, [](Stored stored) { return static_cast<double>(stored); });
}

/// The meaning of codes of an 8-bit float beyond its finite numbers.
enum class Specials {
  ieee,           ///< all ones in the exponent: infinity with mantissa 0, NaN otherwise
  nan_all_ones,   ///< no infinities; NaN where exponent and mantissa are all ones
  nan_minus_zero  ///< no infinities and no -0, whose code is the only NaN
};

using Table = std::array<double, 256>;

Table table_of(int exponent_bits, int bias, Specials specials) {
  const int mantissa_bits = 7 - exponent_bits;
  const int top_exponent = (1 << exponent_bits) - 1;
  const int top_mantissa = (1 << mantissa_bits) - 1;
  Table table{};
  for (int code = 0; code < 256; ++code) {
    const int exponent = (code >> mantissa_bits) & top_exponent;
    const int mantissa = code & top_mantissa;
    double value = exponent == 0
                       ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                       : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    if (specials == Specials::ieee && exponent == top_exponent) {
      value =
          mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    }
    if (specials == Specials::nan_all_ones && exponent == top_exponent && mantissa == top_mantissa) {
      value = std::numeric_limits<double>::quiet_NaN();
    }
    if (specials == Specials::nan_minus_zero && code == 0x80)
      value = std::numeric_limits<double>::quiet_NaN();
    table[static_cast<std::size_t>(code)] = code >= 0x80 ? -value : value;
  }
  return table;
}

void decode_by(const Table& table, std::span<const std::byte> bytes, std::span<double> values) {
  decode_each<std::uint8_t>(bytes, values, [&table](std::uint8_t code) { return table[code]; });
}

template <typename Stored, typename Convert>
void encode_each(std::span<const double> values, std::span<std::byte> bytes, Convert convert) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Stored stored = convert(values[i]);
    std::memcpy(bytes.data() + i * sizeof stored, &stored, sizeof stored);
  }
}

}  // namespace

std::size_t bits(Dtype dtype) { return facts(dtype).bits; }

std::string_view to_string(Dtype dtype) { return facts(dtype).name; }

std::optional<Dtype> dtype(std::string_view name) {
  for (std::size_t i = 0; i < dtype_facts.size(); ++i) {
    if (dtype_facts[i].name == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

bool is_decodable(Dtype dtype) { return facts(dtype).is_decodable; }

bool is_floating(Dtype dtype) { return facts(dtype).is_floating; }

void decode(Dtype dtype, std::span<const std::byte> bytes, std::span<double> values) {
  NORMSCOPE_ASSERT(is_decodable(dtype));
  NORMSCOPE_ASSERT(bytes.size() * 8 == values.size() * bits(dtype));
  static const Table e4m3 = table_of(4, 7, Specials::nan_all_ones);
  static const Table e5m2 = table_of(5, 15, Specials::ieee);
  static const Table e4m3fnuz = table_of(4, 8, Specials::nan_minus_zero);
  static const Table e5m2fnuz = table_of(5, 16, Specials::nan_minus_zero);
  switch (dtype) {
    case Dtype::F64: decode_number<double>(bytes, values); return;
    case Dtype::F32: decode_number<float>(bytes, values); return;
    case Dtype::F16: decode_each<std::uint16_t>(bytes, values, decode_float16); return;
    case Dtype::BF16: decode_each<std::uint16_t>(bytes, values, decode_bfloat16); return;
    case Dtype::F8_E4M3: decode_by(e4m3, bytes, values); return;
    case Dtype::F8_E5M2: decode_by(e5m2, bytes, values); return;
    case Dtype::F8_E4M3FNUZ: decode_by(e4m3fnuz, bytes, values); return;
    case Dtype::F8_E5M2FNUZ: decode_by(e5m2fnuz, bytes, values); return;
    case Dtype::I8: decode_number<std::int8_t>(bytes, values); return;
    case Dtype::U8: decode_number<std::uint8_t>(bytes, values); return;
    case Dtype::I16: decode_number<std::int16_t>(bytes, values); return;
    case Dtype::U16: decode_number<std::uint16_t>(bytes, values); return;
    case Dtype::I32: decode_number<std::int32_t>(bytes, values); return;
    case Dtype::U32: decode_number<std::uint32_t>(bytes, values); return;
    case Dtype::I64: decode_number<std::int64_t>(bytes, values); return;
    case Dtype::U64: decode_number<std::uint64_t>(bytes, values); return;
    case Dtype::BOOL:
      decode_each<std::uint8_t>(bytes, values, [](std::uint8_t stored) { return stored == 0 ? 0.0 : 1.0; });
      return;
    case Dtype::F4:
    case Dtype::F6_E2M3:
    case Dtype::F6_E3M2:
    case Dtype::F8_E8M0:
    case Dtype::C64: return;
  }
}

void encode(Dtype dtype, std::span<const double> values, std::span<std::byte> bytes) {
  NORMSCOPE_ASSERT(dtype == Dtype::F64 || dtype == Dtype::F32 || dtype == Dtype::F16 || dtype == Dtype::BF16);
  NORMSCOPE_ASSERT(bytes.size() * 8 == values.size() * bits(dtype));
  switch (dtype) {
    case Dtype::F64: encode_each<double>(values, bytes, [](double value) { return value; }); return;
    case Dtype::F32:
      encode_each<float>(values, bytes, [](double value) { return static_cast<float>(value); });
      return;
    case Dtype::F16: encode_each<std::uint16_t>(values, bytes, encode_float16); return;
    case Dtype::BF16: encode_each<std::uint16_t>(values, bytes, encode_bfloat16); return;
    default: return;
  }
}

}  // namespace normscope
