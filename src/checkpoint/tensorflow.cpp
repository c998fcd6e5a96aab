#include "tensorflow.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/bytes/fail.hpp>
#include <normscope/bytes/quote.hpp>
#include <normscope/bytes/shape.hpp>
#include <normscope/core/error.hpp>

#include "byte_cursor.hpp"
#include "crc32c.hpp"
#include "level_table.hpp"
#include "protobuf.hpp"

namespace normscope::checkpoint {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view variable_ending = "/.ATTRIBUTES/VARIABLE_VALUE";
constexpr std::string_view object_graph_key = "_CHECKPOINTABLE_OBJECT_GRAPH";
constexpr std::uint64_t text_type = 7;
constexpr std::uint64_t most_shards = 100'000;
/// Largest size of an object graph.
constexpr std::uint64_t largest_object_graph = std::uint64_t{64} << 20;

/// The elements of a tensor, whose checksum is verified at the first read.
class CheckedBytes : public bytes::Source {
 public:
  CheckedBytes(bytes::StoredBytes stored, std::uint32_t checksum, std::string where)
      : stored_(stored), checksum_(checksum), where_(std::move(where)) {}

  [[nodiscard]] std::uint64_t size() const override { return stored_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!is_checked_) check();
    std::vector<std::byte> buffer;
    const Bytes bytes = stored_.part(offset, out.size()).fetch(buffer);
    std::copy(bytes.begin(), bytes.end(), out.begin());
  }

 private:
  void check() const {
    constexpr std::uint64_t step = std::uint64_t{1} << 20;
    std::vector<std::byte> buffer;
    std::uint32_t crc = 0;
    for (std::uint64_t at = 0; at < stored_.size(); at += step) {
      crc = crc32c(stored_.part(at, std::min(step, stored_.size() - at)).fetch(buffer), crc);
    }
    if (masked_crc32c(crc) != checksum_) {
      bytes::fail(ErrorCode::Format, where_, "does not have the checksum that the index states");
    }
    is_checked_ = true;
  }

  bytes::StoredBytes stored_;
  std::uint32_t checksum_;
  std::string where_;
  mutable std::atomic<bool> is_checked_{false};
};

/// The position of a tensor's elements.
struct BundlePlace {
  std::uint64_t shard = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::optional<std::uint32_t> checksum{};
};

/// A BundleEntryProto.
struct BundleEntry {
  std::uint64_t type = 0;
  std::vector<std::uint64_t> shape{};
  BundlePlace place{};
};

std::optional<Dtype> tensorflow_dtype(std::uint64_t number) {
  switch (number) {
    case 1: return Dtype::F32;
    case 2: return Dtype::F64;
    case 3: return Dtype::I32;
    case 4: return Dtype::U8;
    case 5: return Dtype::I16;
    case 6: return Dtype::I8;
    case 8: return Dtype::C64;
    case 9: return Dtype::I64;
    case 10: return Dtype::BOOL;
    case 14: return Dtype::BF16;
    case 17: return Dtype::U16;
    case 19: return Dtype::F16;
    case 22: return Dtype::U32;
    case 23: return Dtype::U64;
    case 24: return Dtype::F8_E5M2;
    case 25: return Dtype::F8_E4M3;
    default: return std::nullopt;
  }
}

class BundleReader {
 public:
  BundleReader(Bytes index, const std::string& name, const std::string& where, const OpenExternal& external)
      : index_(index), name_(name), where_(where), external_(external), parsed_{Arena(index.size(), where)} {}

  ParsedFile read() {
    read_level_table(index_, where_, [this](std::string_view key, Bytes value) {
      key.empty() ? read_header(value) : read_entry(key, value);
    });
    if (shards_ == 0) fail(ErrorCode::Format, "has no header");
    rename();
    for (std::size_t i = 0; i < parsed_.tensors.size(); ++i) place(parsed_.tensors[i], places_[i]);
    sort_tensors(parsed_.tensors, where_ + ":");
    return std::move(parsed_);
  }

 private:
  void read_header(Bytes value) {
    WireReader reader(value, "header", where_);
    shards_ = 1;
    while (const std::optional<WireField> field = reader.next()) {
      if (field->number == 1) shards_ = reader.integer(*field);
      if (field->number == 2 && reader.integer(*field) != 0) {
        fail(ErrorCode::Unsupported, "is a big-endian file, expected little-endian");
      }
    }
    if (shards_ == 0 || shards_ > most_shards) {
      fail(ErrorCode::Unsupported,
           fmt::format("has {} files of elements, expected 1 to {}", shards_, most_shards));
    }
  }

  void read_entry(std::string_view key, Bytes value) {
    const std::string quoted = bytes::quote(key);
    if (shards_ == 0) fail(ErrorCode::Format, fmt::format("has tensor {} before its header", quoted));
    const BundleEntry entry = parse_entry(quoted, value);
    if (entry.type == text_type) {
      if (key == object_graph_key) read_object_graph(entry.place);
      return;
    }
    const std::optional<Dtype> dtype = tensorflow_dtype(entry.type);
    if (!dtype) {
      fail(ErrorCode::Unsupported,
           fmt::format("tensor {} has type {}, which is not known", quoted, entry.type));
    }
    Arena& arena = parsed_.arena;
    const std::span<std::uint64_t> shape = arena.allocate<std::uint64_t>(entry.shape.size());
    std::copy(entry.shape.begin(), entry.shape.end(), shape.begin());
    arena.charge(growth, sizeof(Tensor) + sizeof(BundlePlace));
    parsed_.tensors.push_back({kept(key), *dtype, shape, {}, nullptr});
    places_.push_back(entry.place);
  }

  void place(Tensor& tensor, const BundlePlace& place) {
    tensor.bytes = elements(tensor.name, place);
    check_tensor_size(tensor, where_);
    if (!place.checksum || tensor.bytes.size() == 0) return;
    const std::string who = fmt::format("{}: tensor {}", where_, bytes::quote(tensor.name));
    parsed_.arena.charge(1, sizeof(CheckedBytes) + 64 + who.size());
    parsed_.views.push_back(std::make_unique<CheckedBytes>(tensor.bytes, *place.checksum, who));
    tensor.bytes = bytes::StoredBytes(*parsed_.views.back());
  }

  BundleEntry parse_entry(const std::string& quoted, Bytes value) const {
    BundleEntry entry;
    WireReader reader(value, "entry", where_);
    while (const std::optional<WireField> field = reader.next()) {
      switch (field->number) {
        case 1: entry.type = reader.integer(*field); break;
        case 2: read_shape(reader.bytes(*field), entry.shape); break;
        case 3: entry.place.shard = reader.integer(*field); break;
        case 4: entry.place.offset = reader.integer(*field); break;
        case 5: entry.place.size = reader.integer(*field); break;
        case 6: {
          ByteCursor checksum(field->bytes, "a checksum", where_);
          entry.place.checksum = checksum.number<std::uint32_t>();
          break;
        }
        case 7:
          fail(ErrorCode::Unsupported,
               fmt::format("tensor {} is stored in slices, as partitioned variables are, which are not read",
                           quoted));
        default: break;
      }
    }
    return entry;
  }

  void read_shape(Bytes message, std::vector<std::uint64_t>& shape) const {
    WireReader reader(message, "shape", where_);
    constexpr std::size_t longest_shape = 254;
    while (const std::optional<WireField> field = reader.next()) {
      if (field->number != 2) continue;
      if (shape.size() == longest_shape) {
        fail(ErrorCode::Format, fmt::format("has a tensor of more than {} dimensions", longest_shape));
      }
      shape.push_back(0);
      WireReader dimension(reader.bytes(*field), "dimension", where_);
      while (const std::optional<WireField> part = dimension.next()) {
        if (part->number == 1) shape.back() = dimension.integer(*part);
      }
    }
  }

  bytes::StoredBytes elements(std::string_view tensor, const BundlePlace& place) const {
    if (place.size == 0) return {};
    if (place.shard >= shards_) {
      fail(ErrorCode::Format,
           fmt::format("tensor {} is in file {} of {}", bytes::quote(tensor), place.shard, shards_));
    }
    const bytes::StoredBytes file =
        external_(tensor, fmt::format("{}.data-{:05}-of-{:05}", name_, place.shard, shards_));
    if (place.offset > file.size() || place.size > file.size() - place.offset) {
      fail(ErrorCode::Format, fmt::format("tensor {} has {} bytes at byte {} of its file, which has {}",
                                          bytes::quote(tensor), place.size, place.offset, file.size()));
    }
    return file.part(place.offset, place.size);
  }

  /// A TrackableObjectGraph: the names of variables by key.
  void read_object_graph(const BundlePlace& place) {
    if (place.size > largest_object_graph) return;
    std::vector<std::byte> buffer;
    WireReader text(elements(object_graph_key, place).fetch(buffer), "object graph", where_);
    const std::uint64_t size = text.varint();
    (void)text.raw(4);  // the checksum of the length
    WireReader graph(text.raw(size), "object graph", where_);
    while (const std::optional<WireField> node = graph.next()) {
      if (node->number != 1) continue;
      WireReader object(graph.bytes(*node), "object", where_);
      while (const std::optional<WireField> field = object.next()) {
        if (field->number == 2) read_attribute(object.bytes(*field));
      }
    }
  }

  void read_attribute(Bytes message) {
    WireReader attribute(message, "attribute", where_);
    std::string_view full_name;
    std::string_view key;
    while (const std::optional<WireField> field = attribute.next()) {
      if (field->number == 2) full_name = attribute.text(*field);
      if (field->number == 3) key = attribute.text(*field);
    }
    if (full_name.empty() || key.find(".OPTIMIZER_SLOT") != std::string_view::npos) return;
    parsed_.arena.charge(1, metadata_entry_bytes + key.size() + full_name.size());
    names_.emplace(key, full_name);
  }

  /// Names tensors by their variables if these names are unique, otherwise by their keys.
  void rename() {
    std::map<std::string_view, int> times;
    for (const auto& [key, name] : names_) ++times[name];
    for (const Tensor& tensor : parsed_.tensors) ++times[without_ending(tensor.name)];
    for (Tensor& tensor : parsed_.tensors) {
      const auto named = names_.find(tensor.name);
      const std::string_view key = without_ending(tensor.name);
      tensor.name = named != names_.end() && times.at(named->second) == 1 ? kept(named->second) : key;
    }
  }

  static std::string_view without_ending(std::string_view key) {
    return key.ends_with(variable_ending) ? key.substr(0, key.size() - variable_ending.size()) : key;
  }

  std::string_view kept(std::string_view text) {
    const std::span<char> copy = parsed_.arena.allocate<char>(text.size());
    std::copy(text.begin(), text.end(), copy.begin());
    return {copy.data(), copy.size()};
  }

  [[noreturn]] void fail(ErrorCode code, const std::string& what) const { bytes::fail(code, where_, what); }

  Bytes index_;
  const std::string& name_;
  const std::string& where_;
  const OpenExternal& external_;
  ParsedFile parsed_;
  std::uint64_t shards_ = 0;
  std::vector<BundlePlace> places_;                        ///< of each tensor
  std::map<std::string, std::string, std::less<>> names_;  ///< by key
};

}  // namespace

ParsedFile parse_tensorflow(Bytes index, const std::string& name, const std::string& where,
                            const OpenExternal& external) {
  return BundleReader(index, name, where, external).read();
}

}  // namespace normscope::checkpoint
