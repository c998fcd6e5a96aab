#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/source.hpp>
#include <normscope/files/zip.hpp>

#include "file_format.hpp"
#include "readers.hpp"
#include "shard.hpp"
#include "torch_tensors.hpp"

namespace normscope::files {
namespace {

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

namespace formats {

extern const FileFormat pickle{
    .name = "PyTorch pickle without a zip, as before PyTorch 1.6",
    .begins =
        [](std::string_view text) {
          return text.size() >= 2 && text[0] == '\x80' && text[1] >= 2 && text[1] <= 5;
        },
    .named =
        [](const std::filesystem::path& path) {
          return has_extension(path, {".pt", ".pth", ".ckpt"}) ||
                 (has_extension(path, {".bin"}) && path.filename().string().starts_with("pytorch_model"));
        },
    .open =
        [](ShardRequest request) {
          const std::string member = request.member;
          return open_parsed(std::move(request), "pytorch",
                             [&](std::span<const std::byte> bytes, const std::string& where) {
                               return parse_torch_legacy(bytes, where, member);
                             });
        },
    .has_members = true,
    .stands_alone = true};

}  // namespace formats

}  // namespace normscope::files
