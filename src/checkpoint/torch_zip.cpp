#include "torch_zip.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include <normscope/bytes/fail.hpp>
#include <normscope/bytes/quote.hpp>
#include <normscope/bytes/shape.hpp>
#include <normscope/core/error.hpp>

#include "pickle.hpp"

namespace normscope::checkpoint {
namespace {

using Bytes = std::span<const std::byte>;
using Kind = PickleValue::Kind;

constexpr std::string_view pickle_member = "/data.pkl";

/// The part of a pickle's name before "/data.pkl", nothing for other members.
std::optional<std::string_view> pickle_prefix(const bytes::ZipMember& member) {
  const std::size_t slash = std::min(member.name.find('/'), member.name.size());
  if (member.name.substr(slash) != pickle_member) return std::nullopt;
  return member.name.substr(0, slash);
}

/// The archive's members, by their names after the common prefix.
class Archive {
 public:
  Archive(Bytes bytes, Arena& arena, const std::string& where)
      : bytes_(bytes), where_(where), members_(bytes::read_zip_directory(bytes, where)) {
    arena.charge(members_.size(), sizeof(bytes::ZipMember));
    prefix_ = find_prefix();
    std::sort(members_.begin(), members_.end(),
              [](const bytes::ZipMember& a, const bytes::ZipMember& b) { return a.name < b.name; });
  }

  /// A member's bytes in place; empty if it does not exist.
  [[nodiscard]] std::optional<Bytes> find(std::string_view name) const {
    const bytes::ZipMember* member = entry(name);
    if (member == nullptr) return std::nullopt;
    return bytes::stored_member(bytes_, *member, where_);
  }

  /// The pickle, copied to the arena; unlike the elements, its CRC is checked.
  [[nodiscard]] Bytes pickle(Arena& arena) const {
    const bytes::ZipMember& member = *entry(pickle_member);
    bytes::ZipStream stream(bytes_, member, where_);
    const std::span<std::byte> bytes = arena.allocate<std::byte>(member.size);
    stream.read(bytes);
    stream.finish();
    return bytes;
  }

 private:
  [[nodiscard]] std::string_view find_prefix() const {
    std::optional<std::string_view> prefix;
    for (const bytes::ZipMember& member : members_) {
      const std::optional<std::string_view> found = pickle_prefix(member);
      if (!found) continue;
      if (prefix) bytes::fail(ErrorCode::Format, where_, "has two members data.pkl, expected one");
      prefix = found;
    }
    if (!prefix) {
      bytes::fail(ErrorCode::Unsupported, where_,
                  "is a zip without data.pkl, expected what torch.save writes");
    }
    return *prefix;
  }
  [[nodiscard]] const bytes::ZipMember* entry(std::string_view rest) const {
    const std::string name = fmt::format("{}{}", prefix_, rest);
    const auto found =
        std::lower_bound(members_.begin(), members_.end(), name,
                         [](const bytes::ZipMember& a, const std::string& b) { return a.name < b; });
    return found != members_.end() && found->name == name ? &*found : nullptr;
  }

  Bytes bytes_;
  const std::string& where_;
  std::vector<bytes::ZipMember> members_;
  std::string_view prefix_;
};

/// Resolves a pickle's tensors to the archive's storages.
class Tensors {
 public:
  Tensors(const Archive& archive, const Pickled& pickled, ParsedFile& file, const std::string& where)
      : archive_(archive), pickled_(pickled), file_(file), where_(where) {}

  void add(std::string_view name, const PickledTensor& pickled) {
    Tensor tensor{name, pickled.dtype, pickled.shape, {}};
    const std::optional<std::uint64_t> elements = bytes::element_count(tensor.shape);
    if (!elements) {
      bytes::fail(ErrorCode::Shape, where_,
                  fmt::format("size of tensor {} overflows 64 bits", bytes::quote(name)));
    }
    if (*elements != 0) {
      const std::size_t width = bits(pickled.dtype) / 8;
      const Bytes storage = storage_of(name, pickled);
      const std::uint64_t end = last_element(name, pickled, storage.size() / width) + 1;
      const std::uint64_t begin = pickled.offset;
      tensor.bytes = is_row_major(pickled) ? storage.subspan(begin * width, (end - begin) * width)
                                           : gather(pickled, storage, *elements, width);
    }
    check_tensor_size(tensor, where_);
    file_.arena.charge(growth, sizeof tensor);
    file_.tensors.push_back(tensor);
  }

 private:
  Bytes storage_of(std::string_view name, const PickledTensor& tensor) const {
    const PickledStorage& storage = pickled_.storages[tensor.storage];
    const std::string member = fmt::format("/data/{}", storage.key);
    const std::optional<Bytes> bytes = archive_.find(member);
    if (!bytes) {
      bytes::fail(ErrorCode::Format, where_,
                  fmt::format("tensor {} is in member {}, which is missing", bytes::quote(name),
                              bytes::quote(member.substr(1))));
    }
    const std::size_t width = storage.is_untyped ? 1 : bits(storage.dtype) / 8;
    if (storage.elements != bytes->size() / width || bytes->size() % width != 0) {
      bytes::fail(
          ErrorCode::Shape, where_,
          fmt::format("member {} has {} bytes, expected {} elements of {}", bytes::quote(member.substr(1)),
                      bytes->size(), storage.elements, to_string(storage.dtype)));
    }
    return *bytes;
  }

  /// Index in the storage of the tensor's last element.
  std::uint64_t last_element(std::string_view name, const PickledTensor& tensor, std::uint64_t held) const {
    std::uint64_t last = tensor.offset;
    bool overflows = false;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      std::uint64_t way = 0;
      overflows |= __builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &way);
      overflows |= __builtin_add_overflow(last, way, &last);
    }
    if (overflows || last >= held) {
      bytes::fail(
          ErrorCode::Format, where_,
          fmt::format("tensor {} extends beyond its storage of {} elements", bytes::quote(name), held));
    }
    return last;
  }

  static bool is_row_major(const PickledTensor& tensor) {
    std::uint64_t expected = 1;
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
      if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
      expected *= tensor.shape[i];
    }
    return true;
  }

  /// The elements in row-major order.
  Bytes gather(const PickledTensor& tensor, Bytes storage, std::uint64_t elements, std::size_t width) {
    std::uint64_t size = 0;
    if (__builtin_mul_overflow(elements, width, &size)) size = ~std::uint64_t{0};
    const std::span<std::byte> gathered = file_.arena.allocate<std::byte>(size);
    const std::size_t axes = tensor.shape.size();
    std::vector<std::uint64_t> at(axes, 0);
    std::uint64_t index = tensor.offset;
    for (std::uint64_t i = 0; i < elements; ++i) {
      std::memcpy(&gathered[i * width], &storage[index * width], width);
      for (std::size_t axis = axes; axis-- > 0;) {
        index += tensor.strides[axis];
        if (++at[axis] < tensor.shape[axis]) break;
        index -= tensor.shape[axis] * tensor.strides[axis];
        at[axis] = 0;
      }
    }
    return gathered;
  }

  const Archive& archive_;
  const Pickled& pickled_;
  ParsedFile& file_;
  const std::string& where_;
};

using Items = std::vector<PickleValue>;

bool holds_tensors(const Items& dict) {
  for (std::size_t i = 0; i + 1 < dict.size(); i += 2) {
    if (dict[i].kind == Kind::text && dict[i + 1].kind == Kind::tensor) return true;
  }
  return false;
}

/// The dict that names tensors. A wrapper of a training script takes precedence over the whole, which may
/// contain other tensors, such as a step count.
const Items& state_dict(const Pickled& pickled, const std::string& where) {
  if (pickled.root.kind != Kind::dict) {
    bytes::fail(ErrorCode::Unsupported, where, "does not hold a dict, expected a state dict");
  }
  const Items& root = pickled.containers[pickled.root.index];
  for (const std::string_view wrapper : {"state_dict", "model_state_dict", "model"}) {
    for (std::size_t i = 0; i + 1 < root.size(); i += 2) {
      if (root[i].text != wrapper || root[i + 1].kind != Kind::dict) continue;
      const Items& wrapped = pickled.containers[root[i + 1].index];
      if (holds_tensors(wrapped)) return wrapped;
    }
  }
  if (!root.empty() && !holds_tensors(root)) {
    bytes::fail(ErrorCode::Unsupported, where,
                "its dict holds no tensors, expected a state dict, or one under \"state_dict\" or \"model\"");
  }
  return root;
}

}  // namespace

bool is_torch_zip(std::span<const bytes::ZipMember> members) {
  return std::any_of(members.begin(), members.end(),
                     [](const bytes::ZipMember& member) { return pickle_prefix(member).has_value(); });
}

ParsedFile parse_torch_zip(Bytes bytes, const std::string& where) {
  ParsedFile file{Arena(bytes.size(), where)};
  const Archive archive(bytes, file.arena, where);
  if (const std::optional<Bytes> order = archive.find("/byteorder")) {
    const std::string_view text(reinterpret_cast<const char*>(order->data()), order->size());
    if (text != "little") {
      bytes::fail(ErrorCode::Unsupported, where,
                  fmt::format("byte order is {}, expected little", bytes::quote(text)));
    }
  }
  const Pickled pickled = read_pickle(archive.pickle(file.arena), file.arena, where + ": data.pkl");
  Tensors tensors(archive, pickled, file, where);
  const Items& named = state_dict(pickled, where);
  for (std::size_t i = 0; i + 1 < named.size(); i += 2) {
    if (named[i].kind == Kind::text && named[i + 1].kind == Kind::tensor) {
      tensors.add(named[i].text, pickled.tensors[named[i + 1].index]);
    }
  }
  sort_tensors(file.tensors, where + ":");
  return file;
}

}  // namespace normscope::checkpoint
