#include "torch_zip.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include <normscope/bytes/fail.hpp>
#include <normscope/bytes/quote.hpp>
#include <normscope/core/error.hpp>

#include "pickle.hpp"
#include "torch_state.hpp"

namespace normscope::checkpoint {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view pickle_member = "/data.pkl";
/// Bytes of the member with the byte order that are read.
constexpr std::uint64_t longest_order = 64;

/// The part of a pickle's name before "/data.pkl", nothing for other members.
std::optional<std::string_view> pickle_prefix(const bytes::ZipMember& member) {
  const std::size_t slash = std::min(member.name.find('/'), member.name.size());
  if (member.name.substr(slash) != pickle_member) return std::nullopt;
  return member.name.substr(0, slash);
}

/// The archive's members, by their names after the common prefix.
class Archive {
 public:
  Archive(const bytes::StoredBytes& file, Arena& arena, const std::string& where)
      : file_(file), where_(where), members_(bytes::read_zip_directory(file, directory_, where)) {
    arena.charge(1, directory_.size());
    arena.charge(members_.size(), sizeof(bytes::ZipMember));
    prefix_ = find_prefix();
    std::sort(members_.begin(), members_.end(),
              [](const bytes::ZipMember& a, const bytes::ZipMember& b) { return a.name < b.name; });
  }

  /// A member's bytes in the file; empty if it does not exist.
  [[nodiscard]] std::optional<bytes::StoredBytes> find(std::string_view name) const {
    const bytes::ZipMember* member = entry(name);
    if (member == nullptr) return std::nullopt;
    return bytes::stored_member(file_, *member, where_);
  }

  /// The pickle, copied to the arena; unlike the elements, its CRC is checked.
  [[nodiscard]] Bytes pickle(Arena& arena) const {
    const bytes::ZipMember& member = *entry(pickle_member);
    bytes::ZipStream stream(file_, member, where_);
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

  bytes::StoredBytes file_;
  const std::string& where_;
  std::vector<std::byte> directory_;  ///< of a file that is not in memory; members' names point into it
  std::vector<bytes::ZipMember> members_;
  std::string_view prefix_;
};

}  // namespace

bool is_torch_zip(std::span<const bytes::ZipMember> members) {
  return std::any_of(members.begin(), members.end(),
                     [](const bytes::ZipMember& member) { return pickle_prefix(member).has_value(); });
}

ParsedFile parse_torch_zip(const bytes::StoredBytes& stored, const std::string& where,
                           std::string_view member) {
  ParsedFile file{Arena(static_cast<std::size_t>(std::min(stored.size(), bytes::largest_held)), where)};
  const Archive archive(stored, file.arena, where);
  if (const std::optional<bytes::StoredBytes> order = archive.find("/byteorder")) {
    std::vector<std::byte> buffer;
    const Bytes begin = order->part(0, std::min(order->size(), longest_order)).fetch(buffer);
    const std::string_view text(reinterpret_cast<const char*>(begin.data()), begin.size());
    if (text != "little") {
      bytes::fail(ErrorCode::Unsupported, where,
                  fmt::format("byte order is {}, expected little", bytes::quote(text)));
    }
  }
  const Pickled pickled = read_pickle(archive.pickle(file.arena), file.arena, where + ": data.pkl");
  const auto find = [&archive](const PickledStorage& storage) -> TorchStorage {
    const std::string part = fmt::format("data/{}", storage.key);
    return {archive.find("/" + part), "member " + bytes::quote(part)};
  };
  add_torch_tensors(pickled, member, find, file, where);
  return file;
}

}  // namespace normscope::checkpoint
