#include "torch_tensors.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

namespace normscope::files {
namespace {

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

}  // namespace

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

}  // namespace normscope::files
