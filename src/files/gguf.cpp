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
#include "file_format.hpp"
#include "parsed_file.hpp"
#include "shard.hpp"

namespace normscope::files {
namespace {

constexpr std::uint32_t most_dimensions = 4;
constexpr std::uint64_t longest_text = std::uint64_t{16} << 20;
constexpr std::uint64_t longest_list = 4096;
constexpr std::uint64_t usual_alignment = 32;
/// Memory of a decoding view, with its allocation and the pointer to it.
constexpr std::size_t view_bytes = 128;

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
      std::unique_ptr<QuantizedSource> decoded = decoded_blocks(*where.type, tensor.bytes);
      if (decoded == nullptr) {
        tensor.dtype = Dtype::F4;
        continue;
      }
      parsed_.arena.charge(1, view_bytes);
      tensor.quantized = decoded.get();
      tensor.bytes = StoredBytes(*decoded);
      parsed_.views.push_back(std::move(decoded));
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

Shard open_gguf(std::unique_ptr<Source> file, const std::filesystem::path& path) {
  ParsedFile parsed = parse_gguf(StoredBytes(*file), "gguf: " + path.string());
  return take_parsed(std::move(file), std::move(parsed), "gguf");
}

namespace formats {

extern const FileFormat gguf{
    .name = "GGUF",
    .begins = [](std::string_view text) { return text.starts_with("GGUF"); },
    .named = [](const std::filesystem::path& path) { return has_extension(path, {".gguf"}); },
    .stands_alone = true,
    .by_tensor = true};

}  // namespace formats

}  // namespace normscope::files
