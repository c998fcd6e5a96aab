#include "readers.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/source.hpp>
#include "parsed_file.hpp"

#include "pickle.hpp"

namespace normscope::files {
namespace {

// The tensors that a pickle of torch.save names, whatever file holds their elements.

/// The elements of a storage in the file.
struct TorchStorage {
  std::optional<StoredBytes> bytes{};  ///< empty if they are missing
  std::string name;                    ///< for messages
};
using FindStorage = std::function<TorchStorage(const PickledStorage&)>;

using Bytes = std::span<const std::byte>;
using Kind = PickleValue::Kind;
using Items = std::vector<PickleValue>;

/// Depth of nested dicts to which state dicts are searched, and the largest number that is listed.
constexpr std::size_t deepest_member = 3;
constexpr std::size_t most_members = 1000;

/// Resolves a pickle's tensors to the storages of a file.
class Tensors {
 public:
  Tensors(const FindStorage& find, const Pickled& pickled, ParsedFile& file, const std::string& where)
      : find_(find), pickled_(pickled), file_(file), where_(where) {}

  void add(std::string_view name, const PickleValue& value) {
    if (value.kind == Kind::tensor) return add(name, pickled_.tensors[value.index]);
    // A tensor that is not read is listed, so that what a model is made of is not stated without it.
    const PickledObject& object = pickled_.objects[value.index];
    BlockFormat& unread = file_.arena.allocate<BlockFormat>(1)[0];
    unread = {object.tensor_type, 1, 0};
    file_.arena.charge(growth, sizeof(Tensor));
    file_.tensors.push_back({name, Dtype::U8, object.shape, {}, &unread});
    if (!element_count(object.shape)) fail_size(name);
  }

 private:
  [[noreturn]] void fail_size(std::string_view name) const {
    fail(ErrorCode::Shape, where_, fmt::format("size of tensor {} overflows 64 bits", quote(name)));
  }

  void add(std::string_view name, const PickledTensor& pickled) {
    Tensor tensor{name, pickled.dtype, pickled.shape, {}};
    const std::optional<std::uint64_t> elements = element_count(tensor.shape);
    if (!elements) fail_size(name);
    if (*elements != 0) {
      const std::size_t width = bits(pickled.dtype) / 8;
      const StoredBytes storage = storage_of(name, pickled);
      const std::uint64_t end = last_element(name, pickled, storage.size() / width) + 1;
      const std::uint64_t begin = pickled.offset;
      const StoredBytes used = storage.part(begin * width, (end - begin) * width);
      tensor.bytes = is_row_major(pickled) ? used : gather(pickled, used, *elements, width);
    }
    check_tensor_size(tensor, where_);
    file_.arena.charge(growth, sizeof tensor);
    file_.tensors.push_back(tensor);
  }

  StoredBytes storage_of(std::string_view name, const PickledTensor& tensor) const {
    const PickledStorage& storage = pickled_.storages[tensor.storage];
    const TorchStorage found = find_(storage);
    const std::optional<StoredBytes>& bytes = found.bytes;
    if (!bytes) {
      fail(ErrorCode::Format, where_,
           fmt::format("tensor {} is in {}, which is missing", quote(name), found.name));
    }
    const std::size_t width = storage.width;
    if (storage.elements != bytes->size() / width || bytes->size() % width != 0) {
      fail(ErrorCode::Shape, where_,
           fmt::format("{} has {} bytes, expected {} elements of {}", found.name, bytes->size(),
                       storage.elements, to_string(storage.dtype)));
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
      fail(ErrorCode::Format, where_,
           fmt::format("tensor {} extends beyond its storage of {} elements", quote(name), held));
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

  /// The elements in row-major order; `used` are those of the storage from the tensor's first to its last
  /// one.
  Bytes gather(const PickledTensor& tensor, const StoredBytes& used, std::uint64_t elements,
               std::size_t width) {
    std::uint64_t size = 0;
    if (__builtin_mul_overflow(elements, width, &size)) size = ~std::uint64_t{0};
    const std::span<std::byte> gathered = file_.arena.allocate<std::byte>(size);
    std::vector<std::byte> buffer;
    const Bytes storage = used.fetch(buffer);
    const std::size_t axes = tensor.shape.size();
    std::vector<std::uint64_t> at(axes, 0);
    std::uint64_t index = 0;
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

  const FindStorage& find_;
  const Pickled& pickled_;
  ParsedFile& file_;
  const std::string& where_;
};

/// Whether the file lists the value as a tensor.
bool is_tensor(const Pickled& pickled, const PickleValue& value) {
  return value.kind == Kind::tensor ||
         (value.kind == Kind::object && !pickled.objects[value.index].tensor_type.empty());
}

bool holds_tensors(const Items& dict) {
  for (std::size_t i = 0; i + 1 < dict.size(); i += 2) {
    if (dict[i].kind == Kind::text && dict[i + 1].kind == Kind::tensor) return true;
  }
  return false;
}

/// The name of what would have made an object; Python's own without their module.
std::string class_of(const PickledObject& object) {
  const bool is_plain =
      object.module.empty() || object.module == "builtins" || object.module == "__builtin__";
  return is_plain ? std::string(object.name) : fmt::format("{}.{}", object.module, object.name);
}

/// Makes metadata of the objects that are not read: the keys that lead to each, and its class.
class UnreadObjects {
 public:
  UnreadObjects(const Pickled& pickled, ParsedFile& file) : pickled_(pickled), file_(file) {}

  void add(const PickleValue& value, const std::string& path, std::size_t depth) {
    if (visits_ == most_visits || file_.metadata.size() == most_members) return;
    ++visits_;
    if (value.kind == Kind::object) {
      const PickledObject& object = pickled_.objects[value.index];
      std::string text = class_of(object) + ", not read";
      file_.arena.charge(1, metadata_entry_bytes + path.size() + text.size());
      file_.metadata.try_emplace(path, std::move(text));
    }
    const bool is_dict = value.kind == Kind::dict || value.kind == Kind::module;
    if (depth > deepest_member || !(is_dict || value.kind == Kind::list || value.kind == Kind::tuple)) return;
    const Items& items = pickled_.containers[value.index];
    for (std::size_t i = 0; i < items.size(); i += is_dict ? 2 : 1) {
      const std::size_t at = is_dict ? i + 1 : i;
      if (at == items.size()) return;
      const std::string name = !is_dict ? std::to_string(i) : key_of(items[i]);
      add(items[at], path.empty() ? name : fmt::format("{}/{}", path, name), depth + 1);
    }
  }

 private:
  static constexpr std::size_t most_visits = std::size_t{1} << 18;

  static std::string key_of(const PickleValue& key) {
    if (key.kind == Kind::text) return std::string(key.text);
    return key.kind == Kind::integer ? std::to_string(key.integer) : "?";
  }

  const Pickled& pickled_;
  ParsedFile& file_;
  std::size_t visits_ = 0;
};

/// A dict that holds tensors, and the path of keys that leads to it.
struct Member {
  std::string path;
  const Items* items;
};

void find_members(const Pickled& pickled, const Items& dict, const std::string& path, std::size_t depth,
                  std::vector<Member>& members) {
  for (std::size_t i = 0; i + 1 < dict.size() && members.size() < most_members; i += 2) {
    if (dict[i].kind != Kind::text || dict[i + 1].kind != Kind::dict) continue;
    const Items& inner = pickled.containers[dict[i + 1].index];
    std::string name = path.empty() ? std::string(dict[i].text) : fmt::format("{}/{}", path, dict[i].text);
    if (holds_tensors(inner)) {
      members.push_back({std::move(name), &inner});
    } else if (depth < deepest_member) {
      find_members(pickled, inner, name, depth + 1, members);
    }
  }
}

/// "2 members with tensors ("ema", "model")".
std::string list_members(const std::vector<Member>& members) {
  constexpr std::size_t listed = 6;
  std::string names;
  for (std::size_t i = 0; i < std::min(members.size(), listed); ++i) {
    names += (i > 0 ? ", " : "") + quote(members[i].path);
  }
  return fmt::format("{} members with tensors ({}{})", members.size(), names,
                     members.size() > listed ? ", ..." : "");
}

const Items& state_dict(const Pickled& pickled, std::string_view wanted, const std::string& where) {
  if (pickled.root.kind != Kind::dict) {
    const bool is_object = pickled.root.kind == Kind::object;
    const std::string found =
        is_object ? "holds " + quote(class_of(pickled.objects[pickled.root.index])) : "does not hold a dict";
    fail(ErrorCode::Unsupported, where, found + ", expected a state dict");
  }
  const Items& root = pickled.containers[pickled.root.index];
  std::vector<Member> members;
  find_members(pickled, root, "", 1, members);
  const auto at = [&members](std::string_view path) {
    return std::find_if(members.begin(), members.end(),
                        [path](const Member& member) { return member.path == path; });
  };
  if (!wanted.empty()) {
    const auto found = at(wanted);
    if (found != members.end()) return *found->items;
    fail(ErrorCode::Argument, where,
         fmt::format("has no member {} with tensors{}", quote(wanted),
                     members.empty() ? "" : "; it has " + list_members(members)));
  }
  // The whole may hold other tensors besides a trainer's wrapper, such as a step count.
  const bool is_wrapped = at("state_dict") != members.end() || at("model_state_dict") != members.end() ||
                          at("model") != members.end();
  if (root.empty() || (holds_tensors(root) && !is_wrapped)) return root;
  if (members.size() == 1) return *members.front().items;
  if (members.empty()) {
    fail(ErrorCode::Unsupported, where,
         "its dict holds no tensors, expected a state dict, or one as a member");
  }
  fail(ErrorCode::Argument, where,
       fmt::format("has {}, expected one; name it as FILE:MEMBER", list_members(members)));
}

/// Adds the tensors among the attributes of a module and of the modules in it, by the path of attributes.
class ModuleTensors {
 public:
  ModuleTensors(const Pickled& pickled, Tensors& tensors, Arena& arena, const std::string& where)
      : pickled_(pickled), tensors_(tensors), arena_(arena), where_(where) {}

  void add(const PickleValue& module, const std::string& path, std::size_t depth) {
    if (depth > deepest_module) {
      fail(ErrorCode::Unsupported, where_,
           fmt::format("its modules are nested more than {} deep", deepest_module));
    }
    arena_.charge(1, visit_bytes);
    const Items& attributes = pickled_.containers[module.index];
    for (std::size_t i = 0; i + 1 < attributes.size(); i += 2) {
      const PickleValue& value = attributes[i + 1];
      if (attributes[i].kind != Kind::text || (value.kind != Kind::module && !is_tensor(pickled_, value)))
        continue;
      arena_.charge(1, visit_bytes);
      const std::string name = path + std::string(attributes[i].text);
      if (value.kind == Kind::module) {
        add(value, name + ".", depth + 1);
      } else {
        const std::span<char> kept = arena_.allocate<char>(name.size());
        std::copy(name.begin(), name.end(), kept.begin());
        tensors_.add({kept.data(), kept.size()}, value);
      }
    }
  }

 private:
  static constexpr std::size_t deepest_module = 64;
  /// Cost that is counted for a visit, so that modules that refer to each other many times end in an error.
  static constexpr std::size_t visit_bytes = 64;

  const Pickled& pickled_;
  Tensors& tensors_;
  Arena& arena_;
  const std::string& where_;
};

/// Adds the tensors of a state dict to `file`, sorted. The state dict is the dict at `member`, a path of keys
/// with slashes, such as "ema/module". Without a path it is the whole if that holds tensors itself;
/// otherwise, or if the whole has a "state_dict", "model_state_dict" or "model" with tensors, the only dict
/// in it that holds tensors.
///
/// Errors    Format, Shape; Argument for a path that does not lead to tensors, or for no path if several
///           dicts hold tensors; Unsupported for a pickle without tensors; messages begin with `where`
void add_torch_tensors(const Pickled& pickled, std::string_view member, const FindStorage& find,
                       ParsedFile& file, const std::string& where) {
  Tensors tensors(find, pickled, file, where);
  UnreadObjects(pickled, file).add(pickled.root, "", 1);
  if (pickled.root.kind == Kind::module) {
    if (!member.empty()) {
      fail(ErrorCode::Argument, where,
           fmt::format("is of TorchScript, which has no member {}", quote(member)));
    }
    ModuleTensors(pickled, tensors, file.arena, where).add(pickled.root, "", 1);
    return sort_tensors(file.tensors, where + ":");
  }
  const Items& named = state_dict(pickled, member, where);
  for (std::size_t i = 0; i + 1 < named.size(); i += 2) {
    if (named[i].kind == Kind::text && is_tensor(pickled, named[i + 1])) {
      tensors.add(named[i].text, named[i + 1]);
    }
  }
  sort_tensors(file.tensors, where + ":");
}

using Bytes = std::span<const std::byte>;

constexpr std::string_view pickle_member = "/data.pkl";
/// Bytes of the member with the byte order that are read.
constexpr std::uint64_t longest_order = 64;

/// The part of a pickle's name before "/data.pkl", nothing for other members.
std::optional<std::string_view> pickle_prefix(const ZipMember& member) {
  const std::size_t slash = std::min(member.name.find('/'), member.name.size());
  if (member.name.substr(slash) != pickle_member) return std::nullopt;
  return member.name.substr(0, slash);
}

/// The archive's members, by their names after the common prefix.
class Archive {
 public:
  Archive(const StoredBytes& file, Arena& arena, const std::string& where)
      : file_(file), where_(where), members_(read_zip_directory(file, directory_, where)) {
    arena.charge(1, directory_.size());
    arena.charge(members_.size(), sizeof(ZipMember));
    prefix_ = find_prefix();
    std::sort(members_.begin(), members_.end(),
              [](const ZipMember& a, const ZipMember& b) { return a.name < b.name; });
  }

  /// A member's bytes in the file; empty if it does not exist.
  [[nodiscard]] std::optional<StoredBytes> find(std::string_view name) const {
    const ZipMember* member = entry(name);
    if (member == nullptr) return std::nullopt;
    return stored_member(file_, *member, where_);
  }

  /// The pickle, copied to the arena; unlike the elements, its CRC is checked.
  [[nodiscard]] Bytes pickle(Arena& arena) const {
    const ZipMember& member = *entry(pickle_member);
    ZipStream stream(file_, member, where_);
    const std::span<std::byte> bytes = arena.allocate<std::byte>(member.size);
    stream.read(bytes);
    stream.finish();
    return bytes;
  }

 private:
  [[nodiscard]] std::string_view find_prefix() const {
    std::optional<std::string_view> prefix;
    for (const ZipMember& member : members_) {
      const std::optional<std::string_view> found = pickle_prefix(member);
      if (!found) continue;
      if (prefix) fail(ErrorCode::Format, where_, "has two members data.pkl, expected one");
      prefix = found;
    }
    if (!prefix) {
      fail(ErrorCode::Unsupported, where_, "is a zip without data.pkl, expected what torch.save writes");
    }
    return *prefix;
  }
  [[nodiscard]] const ZipMember* entry(std::string_view rest) const {
    const std::string name = fmt::format("{}{}", prefix_, rest);
    const auto found = std::lower_bound(members_.begin(), members_.end(), name,
                                        [](const ZipMember& a, const std::string& b) { return a.name < b; });
    return found != members_.end() && found->name == name ? &*found : nullptr;
  }

  StoredBytes file_;
  const std::string& where_;
  std::vector<std::byte> directory_;  ///< of a file that is not in memory; members' names point into it
  std::vector<ZipMember> members_;
  std::string_view prefix_;
};

}  // namespace

bool is_torch_zip(std::span<const ZipMember> members) {
  return std::any_of(members.begin(), members.end(),
                     [](const ZipMember& member) { return pickle_prefix(member).has_value(); });
}

ParsedFile parse_torch_zip(const StoredBytes& stored, const std::string& where, std::string_view member) {
  ParsedFile file{Arena(static_cast<std::size_t>(std::min(stored.size(), largest_held)), where)};
  const Archive archive(stored, file.arena, where);
  if (const std::optional<StoredBytes> order = archive.find("/byteorder")) {
    std::vector<std::byte> buffer;
    const Bytes begin = order->part(0, std::min(order->size(), longest_order)).fetch(buffer);
    const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
    if (text != "little") {
      fail(ErrorCode::Unsupported, where, fmt::format("byte order is {}, expected little", quote(text)));
    }
  }
  const Pickled pickled = read_pickle(archive.pickle(file.arena), file.arena, where + ": data.pkl");
  const auto find = [&archive](const PickledStorage& storage) -> TorchStorage {
    const std::string part = fmt::format("data/{}", storage.key);
    return {archive.find("/" + part), "member " + quote(part)};
  };
  add_torch_tensors(pickled, member, find, file, where);
  return file;
}

namespace {

using Bytes = std::span<const std::byte>;
using Kind = PickleValue::Kind;

/// The first pickle, an integer of ten bytes, after its protocol and, from protocol 4 on, its size.
constexpr std::string_view legacy_magic("\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 13);
constexpr std::size_t size_of_frame = 9;
constexpr std::int64_t known_version = 1001;
/// Memory of an entry in the map of storages.
constexpr std::size_t storage_entry_bytes = 128;

class LegacyReader {
 public:
  LegacyReader(Bytes bytes, const std::string& where)
      : rest_(bytes), where_(where), file_{Arena(bytes.size(), where)} {}

  ParsedFile read(std::string_view member) {
    const std::string_view text(reinterpret_cast<const char*>(rest_.data()),
                                std::min(rest_.size(), 2 + size_of_frame + legacy_magic.size()));
    const bool has_frame = text.size() > 2 && text[2] == '\x95';
    const std::size_t begin = std::min(text.size(), 2 + (has_frame ? size_of_frame : 0));
    if (text.substr(begin, legacy_magic.size()) != legacy_magic) {
      fail(ErrorCode::Unsupported, "does not begin as the files of torch.save do");
    }
    rest_ = rest_.subspan(begin + legacy_magic.size());
    check_version();
    check_machine();
    const Pickled object = next("object");
    find_storages(object);
    const auto find = [this](const PickledStorage& storage) -> TorchStorage {
      const auto found = storages_.find(storage.key);
      const std::string name = "storage " + quote(storage.key);
      return {found == storages_.end() ? std::nullopt : std::optional(found->second), name};
    };
    add_torch_tensors(object, member, find, file_, where_);
    return std::move(file_);
  }

 private:
  Pickled next(std::string_view what) {
    return read_first_pickle(rest_, file_.arena, fmt::format("{}: {}", where_, what));
  }

  void check_version() {
    const Pickled version = next("version");
    if (version.root.kind != Kind::integer || version.root.integer != known_version) {
      fail(ErrorCode::Unsupported, fmt::format("has another version than {}", known_version));
    }
  }

  void check_machine() {
    const Pickled machine = next("machine");
    if (machine.root.kind != Kind::dict) fail(ErrorCode::Format, "its third pickle is not a dict");
    const std::vector<PickleValue>& items = machine.containers[machine.root.index];
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      if (items[i].text != "little_endian") continue;
      if (items[i + 1].kind != Kind::boolean || items[i + 1].integer == 0) {
        fail(ErrorCode::Unsupported, "was written by a big-endian machine, expected little-endian");
      }
    }
  }

  /// Splits what follows the pickles into storages.
  void find_storages(const Pickled& object) {
    std::map<std::string_view, const PickledStorage*> named;
    file_.arena.charge(object.storages.size(), 2 * storage_entry_bytes);
    for (const PickledStorage& storage : object.storages) {
      if (storage.is_part) {
        fail(ErrorCode::Unsupported,
             fmt::format("storage {} is a part of another, as before PyTorch 0.4", quote(storage.key)));
      }
      named.emplace(storage.key, &storage);
    }
    const Pickled keys = next("keys");
    if (keys.root.kind != Kind::list) fail(ErrorCode::Format, "its fifth pickle is not a list");
    for (const PickleValue& key : keys.containers[keys.root.index]) {
      const auto found = key.kind == Kind::text ? named.find(key.text) : named.end();
      if (found == named.end()) {
        fail(ErrorCode::Format, fmt::format("lists storage {}, which no tensor has", quote(key.text)));
      }
      const PickledStorage& storage = *found->second;
      const std::string quoted = quote(storage.key);
      const auto count = load<std::uint64_t>(take(sizeof(std::uint64_t), quoted));
      if (count != storage.elements) {
        fail(ErrorCode::Format,
             fmt::format("storage {} has {} elements, expected {}", quoted, count, storage.elements));
      }
      std::uint64_t size = 0;
      if (__builtin_mul_overflow(count, storage.width, &size)) size = ~std::uint64_t{0};
      if (!storages_.emplace(storage.key, take(size, quoted)).second) {
        fail(ErrorCode::Format, fmt::format("lists storage {} twice", quoted));
      }
    }
  }

  Bytes take(std::uint64_t size, const std::string& quoted) {
    if (size > rest_.size()) {
      fail(ErrorCode::Format,
           fmt::format("storage {} needs {} bytes, {} are left", quoted, size, rest_.size()));
    }
    return take_front(rest_, static_cast<std::size_t>(size));
  }

  [[noreturn]] void fail(ErrorCode code, const std::string& what) const { files::fail(code, where_, what); }

  Bytes rest_;
  const std::string& where_;
  ParsedFile file_;
  std::map<std::string_view, Bytes> storages_;
};

}  // namespace

ParsedFile parse_torch_legacy(Bytes bytes, const std::string& where, std::string_view member) {
  return LegacyReader(bytes, where).read(member);
}

}  // namespace normscope::files
