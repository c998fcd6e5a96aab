#include "flax.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include <normscope/bytes/fail.hpp>
#include <normscope/bytes/quote.hpp>
#include <normscope/core/error.hpp>

#include "pickle_globals.hpp"

namespace normscope::checkpoint {
namespace {

constexpr int deepest_nesting = 64;
constexpr std::uint64_t most_flax_dimensions = 64;
constexpr std::string_view chunked = "__msgpack_chunked_array__";

class FlaxReader {
 public:
  FlaxReader(std::span<const std::byte> bytes, const std::string& where)
      : bytes_(bytes), where_(where), parsed_{Arena(bytes.size(), where)} {}

  ParsedFile read() {
    const Item root = item();
    if (root.kind != Kind::map)
      fail(ErrorCode::Format, "does not begin with a map, expected a map of named arrays");
    read_map(root.size, 0);
    if (at_ != bytes_.size()) {
      fail(ErrorCode::Format, fmt::format("has {} bytes after its map", bytes_.size() - at_));
    }
    sort_tensors(parsed_.tensors, where_ + ":");
    return std::move(parsed_);
  }

 private:
  enum class Kind { other, unsigned_integer, text, binary, array, map, extension };

  /// The head of a value. Bytes of text, binary data and extensions follow it, as do elements.
  struct Item {
    Kind kind = Kind::other;
    std::uint64_t size = 0;  ///< bytes, elements, or the value of an integer
    int type = 0;            ///< of an extension
  };

  void read_map(std::uint64_t entries, int depth) {
    check_depth(depth);
    const std::size_t length = name_.size();
    for (std::uint64_t i = 0; i < entries; ++i) {
      const std::string_view key = text("a key");
      if (key == chunked) {
        fail(ErrorCode::Unsupported, fmt::format("tensor {} is stored in chunks, which are not read; export "
                                                 "it to safetensors",
                                                 bytes::quote(name_)));
      }
      if (length != 0) name_ += '.';
      name_ += key;
      read_value(depth + 1);
      name_.resize(length);
    }
  }

  void read_value(int depth) {
    const Item value = item();
    if (value.kind == Kind::map) {
      read_map(value.size, depth);
    } else if (value.kind == Kind::extension && (value.type == 1 || value.type == 3)) {
      read_tensor(value.size);
    } else {
      pass(value, depth);
    }
  }

  /// Skips a value that is not a map of names.
  void pass(const Item& value, int depth) {
    check_depth(depth);
    if (value.kind == Kind::array || value.kind == Kind::map) {
      const int each = value.kind == Kind::map ? 2 : 1;
      for (std::uint64_t i = 0; i < value.size; ++i) {
        for (int part = 0; part < each; ++part) pass(item(), depth + 1);
      }
    } else if (value.kind != Kind::other && value.kind != Kind::unsigned_integer) {
      (void)take(value.size);
    }
  }

  void read_tensor(std::uint64_t size) {
    const std::string quoted = bytes::quote(name_);
    const std::size_t begin = at_;
    const Item parts = item();
    const Item axes = item();
    if (parts.kind != Kind::array || parts.size != 3 || axes.kind != Kind::array) {
      fail(ErrorCode::Format, fmt::format("tensor {} has no shape, dtype and elements", quoted));
    }
    if (axes.size > most_flax_dimensions) {
      fail(ErrorCode::Unsupported, fmt::format("tensor {} has {} dimensions, expected at most {}", quoted,
                                               axes.size, most_flax_dimensions));
    }
    const std::span<std::uint64_t> shape = parsed_.arena.allocate<std::uint64_t>(axes.size);
    for (std::uint64_t& extent : shape) {
      const Item number = item();
      if (number.kind != Kind::unsigned_integer) {
        fail(ErrorCode::Format, fmt::format("tensor {} has a shape that is not of whole numbers", quoted));
      }
      extent = number.size;
    }
    const std::string_view type = text("a dtype");
    // PyTorch's names of dtypes are those of NumPy and ml_dtypes.
    const std::optional<std::size_t> known = find_pickle_global("torch", type);
    if (!known || pickle_global(*known).role != PickleGlobal::Role::dtype) {
      fail(ErrorCode::Unsupported,
           fmt::format("tensor {} has dtype {}, which is not known", quoted, bytes::quote(type)));
    }
    const Item elements = item();
    if (elements.kind != Kind::binary) {
      fail(ErrorCode::Format, fmt::format("tensor {} has no binary elements", quoted));
    }
    const std::span<const std::byte> data = take(elements.size);
    if (at_ - begin != size) {
      fail(ErrorCode::Format,
           fmt::format("tensor {} takes {} bytes, its extension has {}", quoted, at_ - begin, size));
    }
    parsed_.arena.charge(growth, sizeof(Tensor));
    const std::span<char> kept = parsed_.arena.allocate<char>(name_.size());
    std::copy(name_.begin(), name_.end(), kept.begin());
    parsed_.tensors.push_back(
        {{kept.data(), kept.size()}, pickle_global(*known).dtype, shape, bytes::StoredBytes(data), nullptr});
    check_tensor_size(parsed_.tensors.back(), where_);
  }

  std::string_view text(const char* what) {
    const std::size_t begin = at_;
    const Item value = item();
    if (value.kind != Kind::text) {
      fail(ErrorCode::Format, fmt::format("at byte {}: {} is not text", begin, what));
    }
    const std::span<const std::byte> read = take(value.size);
    return {reinterpret_cast<const char*>(read.data()), read.size()};
  }

  // The first byte of a value states its kind, and its size or how many bytes hold that.
  Item item() {
    const auto head = static_cast<unsigned>(take(1)[0]);
    if (head <= 0x7f) return {Kind::unsigned_integer, head};
    if (head <= 0x8f) return {Kind::map, head & 0x0fu};
    if (head <= 0x9f) return {Kind::array, head & 0x0fu};
    if (head <= 0xbf) return {Kind::text, head & 0x1fu};
    if (head >= 0xe0) return {};  // a negative integer
    switch (head) {
      case 0xc0:
      case 0xc2:
      case 0xc3: return {};  // nil, false, true
      case 0xc4:
      case 0xc5:
      case 0xc6: return {Kind::binary, number(1u << (head - 0xc4u))};
      case 0xc7:
      case 0xc8:
      case 0xc9: return extension(number(1u << (head - 0xc7u)));
      case 0xca:
      case 0xcb: (void)take(4u << (head - 0xcau)); return {};  // floating-point
      case 0xcc:
      case 0xcd:
      case 0xce:
      case 0xcf: return {Kind::unsigned_integer, number(1u << (head - 0xccu))};
      case 0xd0:
      case 0xd1:
      case 0xd2:
      case 0xd3: (void)take(1u << (head - 0xd0u)); return {};  // signed
      case 0xd4:
      case 0xd5:
      case 0xd6:
      case 0xd7:
      case 0xd8: return extension(1u << (head - 0xd4u));
      case 0xd9:
      case 0xda:
      case 0xdb: return {Kind::text, number(1u << (head - 0xd9u))};
      case 0xdc:
      case 0xdd: return {Kind::array, number(2u << (head - 0xdcu))};
      case 0xde:
      case 0xdf: return {Kind::map, number(2u << (head - 0xdeu))};
      default:
        fail(ErrorCode::Format, fmt::format("byte {} is 0x{:x}, which begins no value", at_ - 1, head));
    }
  }
  Item extension(std::uint64_t size) { return {Kind::extension, size, static_cast<int>(take(1)[0])}; }
  /// A big-endian number of that many bytes.
  std::uint64_t number(unsigned width) {
    std::uint64_t value = 0;
    for (const std::byte byte : take(width)) value = value << 8 | static_cast<std::uint64_t>(byte);
    return value;
  }
  std::span<const std::byte> take(std::uint64_t size) {
    if (size > bytes_.size() - at_) {
      fail(ErrorCode::Format,
           fmt::format("at byte {}: {} bytes are needed, {} are left", at_, size, bytes_.size() - at_));
    }
    const std::span<const std::byte> taken = bytes_.subspan(at_, static_cast<std::size_t>(size));
    at_ += taken.size();
    return taken;
  }

  void check_depth(int depth) const {
    if (depth > deepest_nesting) {
      fail(ErrorCode::Unsupported, fmt::format("is nested deeper than {} levels", deepest_nesting));
    }
  }
  [[noreturn]] void fail(ErrorCode code, const std::string& what) const { bytes::fail(code, where_, what); }

  std::span<const std::byte> bytes_;
  const std::string& where_;
  ParsedFile parsed_;
  std::string name_;
  std::size_t at_ = 0;
};

}  // namespace

ParsedFile parse_flax(std::span<const std::byte> bytes, const std::string& where) {
  return FlaxReader(bytes, where).read();
}

}  // namespace normscope::checkpoint
