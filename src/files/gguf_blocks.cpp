#include "readers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include <normscope/core/error.hpp>

namespace normscope::files {
namespace {

// Decoders of ggml's blocks of quantized elements, in float32 arithmetic as ggml defines them. Each reads
// one block and writes its elements: 32, or 256 for the types with K and IQ4_XS.

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

/// The values of the codes of MXFP4, doubled: floats with two bits of exponent and one of mantissa.
constexpr std::array<std::int8_t, 16> halves = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

void decode_mxfp4(const std::byte* block, float* values) {
  const float scale = std::ldexp(1.0F, byte_at(block) - 128);
  for (int i = 0; i < small; ++i) {
    values[i] = scale * static_cast<float>(halves[static_cast<std::size_t>(nibble(block + 1, i))]);
  }
}

}  // namespace

/// Where a block has its codes and scales, and what quantizers of the type do with them. What a block can
/// represent is read off its decoder: codes with all bits off and on give the ends of its range.
struct GgufBlocks {
  using Decode = void (*)(const std::byte* block, float* values);
  struct Bytes {
    std::uint32_t begin = 0, end = 0;
  };

  Decode decode = nullptr;
  Bytes codes{};
  /// Steps between the ends; of an uneven type, in units of the block's scale.
  double span = 0.0;
  bool is_uneven = false;    ///< values of codes are those of a table, a nibble each
  bool has_minimum = false;  ///< a minimum is stored beside the scale
  /// Bytes of the scales of parts of the block, which are multiples of the block's, and the largest one.
  Bytes parts{};
  double largest_part = 0.0;
  /// Steps that quantizers may clip at an end: Q4_0 has no code for the positive counterpart of its extreme,
  /// and those that search for a scale make it smaller than the extremes need.
  double clipped = 0.0;
  /// A byte of the smallest and of the largest codes.
  int lowest = 0x00, highest = 0xff;
  bool is_nearest = true;
  bool rounds_scale = true;  ///< codes are chosen before the scale is rounded to float16
};

namespace {

/// A search by importance chooses the scale that suits the codes last.
constexpr GgufBlocks searched(GgufBlocks blocks) {
  blocks.clipped = 3.0;
  blocks.is_nearest = false;
  return blocks;
}

/// Types with K round their parts' scales first and then choose the nearest codes.
constexpr GgufBlocks super(GgufBlocks blocks, double clipped = 4.0) {
  blocks.clipped = clipped;
  blocks.rounds_scale = false;
  return blocks;
}

/// Types whose codes are those of a table; its values lie in a range of `span`.
constexpr GgufBlocks uneven(GgufBlocks blocks, double span) {
  blocks.span = span;
  blocks.is_uneven = true;
  blocks.clipped = 1.0;
  return blocks;
}

constexpr GgufBlocks q4_0 = searched({.decode = decode_q4_0, .codes = {2, 18}, .span = 15});
constexpr GgufBlocks q4_1 =
    searched({.decode = decode_q4_1, .codes = {4, 20}, .span = 15, .has_minimum = true});
constexpr GgufBlocks q5_0 = searched({.decode = decode_q5_0, .codes = {2, 22}, .span = 31});
constexpr GgufBlocks q5_1 =
    searched({.decode = decode_q5_1, .codes = {4, 24}, .span = 31, .has_minimum = true});
constexpr GgufBlocks q8_0 = {
    .decode = decode_q8_0, .codes = {2, 34}, .span = 255, .lowest = 0x80, .highest = 0x7f};
constexpr GgufBlocks q2_k = super({.decode = decode_q2_k,
                                   .codes = {16, 80},
                                   .span = 3,
                                   .has_minimum = true,
                                   .parts = {0, 16},
                                   .largest_part = 15});
constexpr GgufBlocks q3_k =
    super({.decode = decode_q3_k, .codes = {0, 96}, .span = 7, .parts = {96, 108}, .largest_part = 31});
constexpr GgufBlocks q4_k = super({.decode = decode_q4_k,
                                   .codes = {16, 144},
                                   .span = 15,
                                   .has_minimum = true,
                                   .parts = {4, 16},
                                   .largest_part = 63});
constexpr GgufBlocks q5_k = super({.decode = decode_q5_k,
                                   .codes = {16, 176},
                                   .span = 31,
                                   .has_minimum = true,
                                   .parts = {4, 16},
                                   .largest_part = 63});
constexpr GgufBlocks q6_k = super(
    {.decode = decode_q6_k, .codes = {0, 192}, .span = 63, .parts = {192, 208}, .largest_part = 1}, 6.0);
constexpr GgufBlocks iq4_nl = uneven({.decode = decode_iq4_nl, .codes = {2, 18}, .is_nearest = false}, 240);
constexpr GgufBlocks iq4_xs =
    uneven({.decode = decode_iq4_xs, .codes = {8, 136}, .parts = {2, 8}, .largest_part = 31}, 240);
constexpr GgufBlocks mxfp4 = uneven({.decode = decode_mxfp4, .codes = {1, 17}, .rounds_scale = false}, 24);

constexpr std::uint32_t super_block = 256;
/// Blocks that are decoded at a time.
constexpr std::uint64_t blocks_at_a_time = 64;

constexpr GgufType plain(std::uint32_t number, Dtype dtype) { return {number, dtype, {}}; }
constexpr GgufType packed(std::uint32_t number, std::string_view name, std::uint32_t elements,
                          std::uint32_t bytes, const GgufBlocks* codes = nullptr) {
  return {number, std::nullopt, {name, elements, bytes}, codes};
}

// In the order of their numbers. Types without a decoder are those that few files have.
constexpr std::array<GgufType, 34> gguf_types = {{
    plain(0, Dtype::F32),
    plain(1, Dtype::F16),
    packed(2, "Q4_0", 32, 18, &q4_0),
    packed(3, "Q4_1", 32, 20, &q4_1),
    packed(6, "Q5_0", 32, 22, &q5_0),
    packed(7, "Q5_1", 32, 24, &q5_1),
    packed(8, "Q8_0", 32, 34, &q8_0),
    packed(9, "Q8_1", 32, 40),
    packed(10, "Q2_K", super_block, 84, &q2_k),
    packed(11, "Q3_K", super_block, 110, &q3_k),
    packed(12, "Q4_K", super_block, 144, &q4_k),
    packed(13, "Q5_K", super_block, 176, &q5_k),
    packed(14, "Q6_K", super_block, 210, &q6_k),
    packed(15, "Q8_K", super_block, 292),
    packed(16, "IQ2_XXS", super_block, 66),
    packed(17, "IQ2_XS", super_block, 74),
    packed(18, "IQ3_XXS", super_block, 98),
    packed(19, "IQ1_S", super_block, 50),
    packed(20, "IQ4_NL", 32, 18, &iq4_nl),
    packed(21, "IQ3_S", super_block, 110),
    packed(22, "IQ2_S", super_block, 82),
    packed(23, "IQ4_XS", super_block, 136, &iq4_xs),
    plain(24, Dtype::I8),
    plain(25, Dtype::I16),
    plain(26, Dtype::I32),
    plain(27, Dtype::I64),
    plain(28, Dtype::F64),
    packed(29, "IQ1_M", super_block, 56),
    plain(30, Dtype::BF16),
    packed(34, "TQ1_0", super_block, 54),
    packed(35, "TQ2_0", super_block, 66),
    packed(39, "MXFP4", 32, 17, &mxfp4),
    packed(40, "NVFP4", 64, 36),
    packed(41, "Q1_0", 128, 18),
}};

/// The elements of a block, the first ones of these.
using Values = std::array<float, large>;

/// Values of a block whose bytes are changed before it is decoded.
class ChangedBlock {
 public:
  ChangedBlock(const GgufType& type, const std::byte* block) : codes_(*type.codes) {
    std::copy(block, block + type.blocks.bytes, bytes_.begin());
  }

  [[nodiscard]] Values with_codes(int byte) {
    std::fill(bytes_.begin() + codes_.codes.begin, bytes_.begin() + codes_.codes.end,
              static_cast<std::byte>(byte));
    Values values;
    codes_.decode(bytes_.data(), values.data());
    return values;
  }
  void set_largest_parts() {
    std::fill(bytes_.begin() + codes_.parts.begin, bytes_.begin() + codes_.parts.end, std::byte{0xff});
  }

 private:
  const GgufBlocks& codes_;
  std::array<std::byte, large> bytes_;
};

/// Half the distance between neighbours in float16, at most, for a value that is at most so many times the
/// number that is rounded.
double half_precision(double value, double times = 1.0) {
  return std::max(0x1p-11 * std::abs(value), 0x1p-25 * times);
}

class BlockRanges {
 public:
  BlockRanges(const GgufType& type, const std::byte* block) : codes_(*type.codes) {
    codes_.decode(block, values_.data());
    ChangedBlock changed(type, block);
    first_ = changed.with_codes(codes_.lowest);
    last_ = changed.with_codes(codes_.highest);
    if (codes_.is_uneven) {
      for (std::size_t code = 0; code < table_.size(); ++code) {
        table_[code] = changed.with_codes(static_cast<int>(0x11 * code));
      }
    }
    if (codes_.largest_part == 0.0) return;
    changed.set_largest_parts();
    first_of_largest_ = changed.with_codes(codes_.lowest);
    last_of_largest_ = changed.with_codes(codes_.highest);
  }

  [[nodiscard]] QuantizedElement element(std::size_t i) const {
    QuantizedElement result{.value = values_[i]};
    const double width = place(i, result);
    const double scale = width / codes_.span;
    const double minimum = codes_.has_minimum ? first_[i] : 0.0;
    if (codes_.rounds_scale) {
      const double code = scale == 0.0 ? codes_.span : std::abs(result.value - minimum) / scale;
      result.rounding = code * half_precision(scale, codes_.largest_part + 1.0) +
                        (codes_.has_minimum ? half_precision(minimum) : 0.0);
    }
    double step = result.step;
    if (codes_.largest_part != 0.0) {
      // A part's scale and minimum are integers times the block's: each is less than 1 from what it should
      // be.
      const double first = first_of_largest_[i] / codes_.largest_part;
      const double last = last_of_largest_[i] / codes_.largest_part;
      const double unit = std::abs(last - first);
      result.beyond = codes_.has_minimum ? unit + std::abs(first) : std::max(std::abs(first), std::abs(last));
      step += step > 0.0 ? step / width * unit : unit / codes_.span;
    }
    result.beyond += codes_.clipped * step;
    return result;
  }

 private:
  /// Fills the neighbours of the element's value, and returns the length of the block's range.
  double place(std::size_t i, QuantizedElement& result) const {
    if (!codes_.is_uneven) {
      const double low = std::min(first_[i], last_[i]);
      const double high = std::max(first_[i], last_[i]);
      result.step = (high - low) / codes_.span;
      result.below = result.value > low + 0.5 * result.step ? result.step : 0.0;
      result.above = result.value < high - 0.5 * result.step ? result.step : 0.0;
      return high - low;
    }
    double low = result.value;
    double high = result.value;
    double nearest = 0.0;
    for (const Values& values : table_) {
      const double change = values[i] - result.value;
      low = std::min<double>(low, values[i]);
      high = std::max<double>(high, values[i]);
      if (change < 0.0 && (result.below == 0.0 || -change < result.below)) result.below = -change;
      if (change > 0.0 && (result.above == 0.0 || change < result.above)) result.above = change;
      if (change != 0.0 && (nearest == 0.0 || std::abs(change) < nearest)) nearest = std::abs(change);
    }
    result.step = nearest;
    return high - low;
  }

  const GgufBlocks& codes_;
  // Filled where they are used.
  Values values_, first_, last_, first_of_largest_, last_of_largest_;
  std::array<Values, 16> table_;  ///< of each code
};

class DecodedBlocks : public QuantizedSource {
 public:
  DecodedBlocks(const GgufType& type, StoredBytes stored) : type_(type), stored_(stored) {}

  [[nodiscard]] std::uint64_t size() const override {
    return stored_.size() / type_.blocks.bytes * type_.blocks.elements * sizeof(float);
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    NORMSCOPE_ASSERT(offset <= size() && out.size() <= size() - offset);
    const std::uint64_t block_size = type_.blocks.elements * sizeof(float);
    std::vector<std::byte> buffer;
    std::vector<float> values;
    while (!out.empty()) {
      const std::uint64_t first = offset / block_size;
      const std::uint64_t end = (offset + out.size() + block_size - 1) / block_size;
      const auto count = static_cast<std::size_t>(std::min(blocks_at_a_time, end - first));
      const std::span<const std::byte> blocks = fetch(first, count, buffer);
      values.resize(count * type_.blocks.elements);
      for (std::size_t i = 0; i < count; ++i) {
        type_.codes->decode(&blocks[i * type_.blocks.bytes], &values[i * type_.blocks.elements]);
      }
      const auto from = static_cast<std::size_t>(offset - first * block_size);
      const std::size_t size = std::min(out.size(), values.size() * sizeof(float) - from);
      std::memcpy(out.data(), reinterpret_cast<const std::byte*>(values.data()) + from, size);
      offset += size;
      out = out.subspan(size);
    }
  }

  void describe(std::uint64_t first, std::span<QuantizedElement> out) const override {
    std::vector<std::byte> buffer;
    while (!out.empty()) {
      const std::uint64_t block = first / type_.blocks.elements;
      const auto from = static_cast<std::size_t>(first % type_.blocks.elements);
      const auto count = std::min(out.size(), static_cast<std::size_t>(type_.blocks.elements) - from);
      const BlockRanges ranges(type_, fetch(block, 1, buffer).data());
      for (std::size_t i = 0; i < count; ++i) out[i] = ranges.element(from + i);
      first += count;
      out = out.subspan(count);
    }
  }

  [[nodiscard]] bool is_nearest() const override { return type_.codes->is_nearest; }

 private:
  [[nodiscard]] std::span<const std::byte> fetch(std::uint64_t first, std::uint64_t count,
                                                 std::vector<std::byte>& buffer) const {
    return stored_.part(first * type_.blocks.bytes, count * type_.blocks.bytes).fetch(buffer);
  }

  const GgufType& type_;
  StoredBytes stored_;
};

}  // namespace

const GgufType* gguf_type(std::uint32_t number) {
  const auto* const found = std::find_if(gguf_types.begin(), gguf_types.end(),
                                         [number](const GgufType& type) { return type.number == number; });
  return found == gguf_types.end() ? nullptr : found;
}

std::unique_ptr<QuantizedSource> decoded_blocks(const GgufType& type, StoredBytes stored) {
  if (type.codes == nullptr) return nullptr;
  return std::make_unique<DecodedBlocks>(type, stored);
}

}  // namespace normscope::files
