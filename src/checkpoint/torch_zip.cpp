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

}  // namespace

bool is_torch_zip(std::span<const bytes::ZipMember> members) {
  return std::any_of(members.begin(), members.end(),
                     [](const bytes::ZipMember& member) { return pickle_prefix(member).has_value(); });
}

ParsedFile parse_torch_zip(Bytes bytes, const std::string& where, std::string_view member) {
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
  const auto find = [&archive](const PickledStorage& storage) -> TorchStorage {
    const std::string part = fmt::format("data/{}", storage.key);
    return {archive.find("/" + part), "member " + bytes::quote(part)};
  };
  add_torch_tensors(pickled, member, find, file, where);
  return file;
}

}  // namespace normscope::checkpoint
