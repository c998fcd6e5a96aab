#include "readers.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/dtype.hpp>
#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/source.hpp>
#include "parsed_file.hpp"

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

// The element types of GGUF, numbered as in ggml.

/// How a tensor of a GGUF file is stored.
struct GgufType {
  std::uint32_t number = 0;
  std::optional<Dtype> dtype{};  ///< of elements that are stored one by one
  BlockFormat blocks{};          ///< else, of blocks of elements
};

/// Elements of a tensor in blocks, decoded to little-endian float32 as they are asked for.
class DecodedBlocks : public Source {
 public:
  /// `stored` are whole blocks of `format`, which has a decoder; both outlive the object.
  DecodedBlocks(const BlockFormat& format, StoredBytes stored) : format_(format), stored_(stored) {}

  [[nodiscard]] std::uint64_t size() const override;
  void read(std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  const BlockFormat& format_;
  StoredBytes stored_;
};

constexpr std::uint32_t super_block = 256;
/// Blocks that are decoded at a time.
constexpr std::uint64_t blocks_at_a_time = 64;

constexpr GgufType plain(std::uint32_t number, Dtype dtype) { return {number, dtype, {}}; }
constexpr GgufType packed(std::uint32_t number, std::string_view name, std::uint32_t elements,
                          std::uint32_t bytes, BlockFormat::Decode decode = nullptr) {
  return {number, std::nullopt, {name, elements, bytes, decode}};
}

// In the order of their numbers. Types without a decoder are those that few files have.
constexpr std::array<GgufType, 34> gguf_types = {{
    plain(0, Dtype::F32),
    plain(1, Dtype::F16),
    packed(2, "Q4_0", 32, 18, decode_q4_0),
    packed(3, "Q4_1", 32, 20, decode_q4_1),
    packed(6, "Q5_0", 32, 22, decode_q5_0),
    packed(7, "Q5_1", 32, 24, decode_q5_1),
    packed(8, "Q8_0", 32, 34, decode_q8_0),
    packed(9, "Q8_1", 32, 40),
    packed(10, "Q2_K", super_block, 84, decode_q2_k),
    packed(11, "Q3_K", super_block, 110, decode_q3_k),
    packed(12, "Q4_K", super_block, 144, decode_q4_k),
    packed(13, "Q5_K", super_block, 176, decode_q5_k),
    packed(14, "Q6_K", super_block, 210, decode_q6_k),
    packed(15, "Q8_K", super_block, 292),
    packed(16, "IQ2_XXS", super_block, 66),
    packed(17, "IQ2_XS", super_block, 74),
    packed(18, "IQ3_XXS", super_block, 98),
    packed(19, "IQ1_S", super_block, 50),
    packed(20, "IQ4_NL", 32, 18, decode_iq4_nl),
    packed(21, "IQ3_S", super_block, 110),
    packed(22, "IQ2_S", super_block, 82),
    packed(23, "IQ4_XS", super_block, 136, decode_iq4_xs),
    plain(24, Dtype::I8),
    plain(25, Dtype::I16),
    plain(26, Dtype::I32),
    plain(27, Dtype::I64),
    plain(28, Dtype::F64),
    packed(29, "IQ1_M", super_block, 56),
    plain(30, Dtype::BF16),
    packed(34, "TQ1_0", super_block, 54),
    packed(35, "TQ2_0", super_block, 66),
    packed(39, "MXFP4", 32, 17),
    packed(40, "NVFP4", 64, 36),
    packed(41, "Q1_0", 128, 18),
}};

/// The type of that number, or null.
const GgufType* gguf_type(std::uint32_t number) {
  const auto* const found = std::find_if(gguf_types.begin(), gguf_types.end(),
                                         [number](const GgufType& type) { return type.number == number; });
  return found == gguf_types.end() ? nullptr : found;
}

std::uint64_t DecodedBlocks::size() const {
  return stored_.size() / format_.bytes * format_.elements * sizeof(float);
}

void DecodedBlocks::read(std::uint64_t offset, std::span<std::byte> out) const {
  NORMSCOPE_ASSERT(offset <= size() && out.size() <= size() - offset);
  NORMSCOPE_ASSERT(format_.decode != nullptr);
  const std::uint64_t block_size = format_.elements * sizeof(float);
  std::vector<std::byte> buffer;
  std::vector<float> values;
  while (!out.empty()) {
    const std::uint64_t first = offset / block_size;
    const std::uint64_t end = (offset + out.size() + block_size - 1) / block_size;
    const auto count = static_cast<std::size_t>(std::min(blocks_at_a_time, end - first));
    const std::span<const std::byte> blocks =
        stored_.part(first * format_.bytes, count * std::uint64_t{format_.bytes}).fetch(buffer);
    values.resize(count * format_.elements);
    for (std::size_t i = 0; i < count; ++i) {
      format_.decode(&blocks[i * format_.bytes], &values[i * format_.elements]);
    }
    const auto from = static_cast<std::size_t>(offset - first * block_size);
    const std::size_t size = std::min(out.size(), values.size() * sizeof(float) - from);
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(values.data()) + from, size);
    offset += size;
    out = out.subspan(size);
  }
}

constexpr std::uint32_t most_dimensions = 4;
constexpr std::uint64_t longest_text = std::uint64_t{16} << 20;
constexpr std::uint64_t longest_list = 4096;
constexpr std::uint64_t usual_alignment = 32;
/// Memory of a decoding view, with its allocation and the pointer to it.
constexpr std::size_t view_bytes = sizeof(DecodedBlocks) + 64;

enum class ValueType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

class GgufReader {
 public:
  GgufReader(const StoredBytes& file, const std::string& where)
      : file_(file),
        where_(where),
        parsed_{Arena(static_cast<std::size_t>(std::min(file.size(), largest_held)), where)} {}

  ParsedFile read() {
    const auto [tensors, entries] = read_counts();
    for (std::uint64_t i = 0; i < entries; ++i) read_entry();
    const std::uint64_t alignment = read_alignment();
    for (std::uint64_t i = 0; i < tensors; ++i) read_tensor(alignment);
    place(alignment);
    sort_tensors(parsed_.tensors, where_ + ":");
    return std::move(parsed_);
  }

 private:
  struct Counts {
    std::uint64_t tensors = 0;
    std::uint64_t entries = 0;
  };

  Counts read_counts() {
    if (const auto magic = take(4); std::memcmp(magic.data(), "GGUF", 4) != 0) {
      fail(ErrorCode::Format, "does not begin with GGUF");
    }
    const auto version = number<std::uint32_t>();
    if ((version & 0xffff) == 0 && version != 0) {
      fail(ErrorCode::Unsupported, "is a big-endian file, expected little-endian");
    }
    if (version != 2 && version != 3) {
      fail(ErrorCode::Unsupported, fmt::format("has version {}, expected 2 or 3", version));
    }
    const auto tensors = number<std::uint64_t>();
    return {tensors, number<std::uint64_t>()};
  }

  // Metadata.
  void read_entry() {
    const std::string key = text("a metadata key");
    const auto type = number<std::uint32_t>();
    std::string value = read_value(key, type);
    parsed_.arena.charge(1, metadata_entry_bytes + key.size() + value.size());
    if (!parsed_.metadata.emplace(key, std::move(value)).second) {
      fail(ErrorCode::Format, fmt::format("has metadata {} twice", quote(key)));
    }
  }

  std::string read_value(const std::string& key, std::uint32_t type) {
    if (type == static_cast<std::uint32_t>(ValueType::text)) return text("metadata " + quote(key));
    if (type == static_cast<std::uint32_t>(ValueType::array)) return read_array(key);
    return read_number(key, type);
  }

  std::string read_number(const std::string& key, std::uint32_t type) {
    switch (static_cast<ValueType>(type)) {
      case ValueType::u8: return std::to_string(number<std::uint8_t>());
      case ValueType::i8: return std::to_string(number<std::int8_t>());
      case ValueType::u16: return std::to_string(number<std::uint16_t>());
      case ValueType::i16: return std::to_string(number<std::int16_t>());
      case ValueType::u32: return std::to_string(number<std::uint32_t>());
      case ValueType::i32: return std::to_string(number<std::int32_t>());
      case ValueType::u64: return std::to_string(number<std::uint64_t>());
      case ValueType::i64: return std::to_string(number<std::int64_t>());
      // The shortest decimal that is this float: the number that was written before it was rounded.
      case ValueType::f32: return fmt::format("{}", number<float>());
      case ValueType::f64: return fmt::format("{}", number<double>());
      case ValueType::boolean: return number<std::uint8_t>() != 0 ? "true" : "false";
      default: fail_type(key, type);
    }
  }

  std::uint64_t size_of(const std::string& key, std::uint32_t type) const {
    switch (static_cast<ValueType>(type)) {
      case ValueType::u8:
      case ValueType::i8:
      case ValueType::boolean: return 1;
      case ValueType::u16:
      case ValueType::i16: return 2;
      case ValueType::u32:
      case ValueType::i32:
      case ValueType::f32: return 4;
      case ValueType::u64:
      case ValueType::i64:
      case ValueType::f64: return 8;
      default: fail_type(key, type);
    }
  }

  std::string read_array(const std::string& key) {
    const auto type = number<std::uint32_t>();
    const auto count = number<std::uint64_t>();
    if (type == static_cast<std::uint32_t>(ValueType::text)) {
      for (std::uint64_t i = 0; i < count; ++i) skip(number<std::uint64_t>());
      return fmt::format("an array of {} strings", count);
    }
    const std::uint64_t size = size_of(key, type);
    if (count > longest_list) {
      std::uint64_t bytes = 0;
      if (__builtin_mul_overflow(count, size, &bytes)) bytes = ~std::uint64_t{0};
      skip(bytes);
      return fmt::format("an array of {} numbers", count);
    }
    std::string list = "[";
    for (std::uint64_t i = 0; i < count; ++i) {
      if (i > 0) list += ',';
      list += read_number(key, type);
    }
    return list + "]";
  }

  std::uint64_t read_alignment() const {
    const auto stated = parsed_.metadata.find("general.alignment");
    if (stated == parsed_.metadata.end()) return usual_alignment;
    const std::string& digits = stated->second;
    const bool is_number =
        !digits.empty() && digits.size() <= 9 && digits.find_first_not_of("0123456789") == std::string::npos;
    const std::uint64_t alignment = is_number ? std::stoull(digits) : 0;
    if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
      fail(ErrorCode::Format, fmt::format("general.alignment is {}, expected a power of 2", quote(digits)));
    }
    return alignment;
  }

  void read_tensor(std::uint64_t alignment) {
    const std::string name = text("a tensor's name");
    const std::string quoted = quote(name);
    const auto axes = number<std::uint32_t>();
    if (axes > most_dimensions) {
      fail(ErrorCode::Format,
           fmt::format("tensor {} has {} dimensions, expected at most {}", quoted, axes, most_dimensions));
    }
    const std::span<std::uint64_t> shape = parsed_.arena.allocate<std::uint64_t>(axes);
    for (std::size_t i = axes; i-- > 0;) shape[i] = number<std::uint64_t>();
    const auto number_of_type = number<std::uint32_t>();
    const auto offset = number<std::uint64_t>();
    const GgufType* const type = gguf_type(number_of_type);
    if (type == nullptr) {
      fail(ErrorCode::Unsupported,
           fmt::format("tensor {} has type {}, which is not known", quoted, number_of_type));
    }
    const std::uint64_t size = stored_size(quoted, shape, *type);
    if (offset != data_size_) {
      fail(ErrorCode::Format,
           fmt::format("tensor {} begins at byte {} of the data, expected {}, after the one "
                       "before it",
                       quoted, offset, data_size_));
    }
    std::uint64_t padded = 0;
    if (__builtin_add_overflow(size, alignment - 1, &padded) ||
        __builtin_add_overflow(data_size_, padded / alignment * alignment, &data_size_)) {
      fail(ErrorCode::Shape, fmt::format("size of tensor {} overflows 64 bits", quoted));
    }
    parsed_.arena.charge(growth, sizeof(Tensor) + sizeof(Placed));
    placed_.push_back({type, offset, size});
    const std::span<char> kept = parsed_.arena.allocate<char>(name.size());
    std::copy(name.begin(), name.end(), kept.begin());
    parsed_.tensors.push_back(
        {{kept.data(), kept.size()}, type->dtype.value_or(Dtype::F32), shape, {}, nullptr});
  }

  std::uint64_t stored_size(const std::string& quoted, std::span<const std::uint64_t> shape,
                            const GgufType& type) const {
    const std::optional<std::uint64_t> elements = element_count(shape);
    const std::uint64_t block = type.dtype ? 1 : type.blocks.elements;
    const std::uint64_t row = shape.empty() ? 1 : shape.back();
    if (row % block != 0) {
      fail(ErrorCode::Shape,
           fmt::format("tensor {} has rows of {}, expected a multiple of {}, the blocks of {}", quoted, row,
                       block, type.blocks.name));
    }
    const std::uint64_t width = type.dtype ? bits(*type.dtype) / 8 : type.blocks.bytes;
    std::uint64_t size = 0;
    if (!elements || __builtin_mul_overflow(*elements / block, width, &size)) {
      fail(ErrorCode::Shape, fmt::format("size of tensor {} overflows 64 bits", quoted));
    }
    return size;
  }

  /// Gives every tensor its bytes, once the end of the header is known.
  void place(std::uint64_t alignment) {
    const std::uint64_t begin = (at_ + alignment - 1) / alignment * alignment;
    const std::uint64_t held = file_.size() - std::min(begin, file_.size());
    for (std::size_t i = 0; i < placed_.size(); ++i) {
      Tensor& tensor = parsed_.tensors[i];
      const Placed& where = placed_[i];
      if (where.offset > held || where.size > held - where.offset) {
        fail(ErrorCode::Format, fmt::format("tensor {} ends at byte {} of the data, which has {}",
                                            quote(tensor.name), where.offset + where.size, held));
      }
      if (where.size == 0) continue;
      tensor.bytes = file_.part(begin + where.offset, where.size);
      if (where.type->dtype) continue;
      tensor.blocks = &where.type->blocks;
      if (tensor.blocks->decode == nullptr) {
        tensor.dtype = Dtype::F4;
        continue;
      }
      parsed_.arena.charge(1, view_bytes);
      parsed_.views.push_back(std::make_unique<DecodedBlocks>(where.type->blocks, tensor.bytes));
      tensor.bytes = StoredBytes(*parsed_.views.back());
    }
  }

  // Bytes.
  std::span<const std::byte> take(std::uint64_t size) {
    const std::uint64_t begin = at_;
    skip(size);
    return file_.part(begin, size).fetch(buffer_);
  }
  void skip(std::uint64_t size) {
    if (size > file_.size() - at_) {
      fail(ErrorCode::Format,
           fmt::format("at byte {}: {} bytes are needed, {} are left", at_, size, file_.size() - at_));
    }
    at_ += size;
  }
  template <typename Number>
  Number number() {
    return load<Number>(take(sizeof(Number)));
  }
  std::string text(const std::string& what) {
    const auto size = number<std::uint64_t>();
    if (size > longest_text && size <= file_.size() - at_) {
      fail(ErrorCode::Unsupported,
           fmt::format("{} has {} bytes, expected at most {}", what, size, longest_text));
    }
    const std::span<const std::byte> bytes = take(size);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  [[noreturn]] void fail_type(const std::string& key, std::uint32_t type) const {
    fail(ErrorCode::Unsupported,
         fmt::format("metadata {} has a value of type {}, which is not known", quote(key), type));
  }
  [[noreturn]] void fail(ErrorCode code, const std::string& what) const { files::fail(code, where_, what); }

  struct Placed {
    const GgufType* type;
    std::uint64_t offset;
    std::uint64_t size;
  };

  const StoredBytes& file_;
  const std::string& where_;
  ParsedFile parsed_;
  std::vector<std::byte> buffer_;
  std::vector<Placed> placed_;  ///< of each tensor
  std::uint64_t at_ = 0;
  std::uint64_t data_size_ = 0;
};

}  // namespace

ParsedFile parse_gguf(const StoredBytes& file, const std::string& where) {
  return GgufReader(file, where).read();
}

namespace {

namespace fs = std::filesystem;

/// Number of digits in a part's name, which limits the number of parts.
constexpr std::size_t part_digits = 5;

/// `text` as a number; `fallback` unless it consists of 1 to 9 digits.
std::uint64_t whole_number(std::string_view text, std::uint64_t fallback) {
  const bool is_number =
      !text.empty() && text.size() <= 9 && text.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number ? std::stoull(std::string(text)) : fallback;
}

}  // namespace

std::string GgufPart::name(std::uint64_t other) const {
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, other, count);
}

std::optional<GgufPart> gguf_part(const std::string& name) {
  const std::size_t ending = GgufPart{"", 1, 1}.name(1).size();
  if (name.size() <= ending) return std::nullopt;
  const std::string_view end = std::string_view(name).substr(name.size() - ending);
  const GgufPart part{name.substr(0, name.size() - ending), whole_number(end.substr(1, part_digits), 0),
                      whole_number(end.substr(10, part_digits), 0)};
  const bool is_part = part.number >= 1 && part.number <= part.count && part.name(part.number) == name;
  return is_part ? std::optional(part) : std::nullopt;
}

std::vector<fs::path> gguf_files(const fs::path& path,
                                 const std::map<std::string, std::string, std::less<>>& metadata) {
  const auto stated = [&metadata](std::string_view key, std::uint64_t fallback) {
    const auto found = metadata.find(key);
    return found == metadata.end() ? fallback : whole_number(found->second, fallback);
  };
  const std::uint64_t count = stated("split.count", 1);
  if (count <= 1) return {path};
  const std::uint64_t number = stated("split.no", 0) + 1;
  const std::optional<GgufPart> part = gguf_part(path.filename().string());
  if (!part || part->number != number || part->count != count) {
    throw Error(ErrorCode::Format,
                fmt::format("gguf: {}: is part {} of {}, expected a name that ends with {}", path.string(),
                            number, count, GgufPart{"", number, count}.name(number)));
  }
  std::vector<fs::path> files;
  for (std::uint64_t i = 1; i <= count; ++i) files.push_back(path.parent_path() / part->name(i));
  return files;
}

}  // namespace normscope::files
