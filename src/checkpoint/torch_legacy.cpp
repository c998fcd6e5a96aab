#include "torch_legacy.hpp"

#include <cstdint>
#include <map>
#include <optional>

#include <fmt/core.h>

#include <normscope/bytes/fail.hpp>
#include <normscope/bytes/little_endian.hpp>
#include <normscope/bytes/quote.hpp>
#include <normscope/core/error.hpp>

#include "pickle.hpp"
#include "torch_state.hpp"

namespace normscope::checkpoint {
namespace {

using Bytes = std::span<const std::byte>;
using Kind = PickleValue::Kind;

/// The first pickle, an integer of ten bytes, after its protocol and, from protocol 4 on, its size.
constexpr std::string_view magic("\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 13);
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
                                std::min(rest_.size(), 2 + size_of_frame + magic.size()));
    const bool has_frame = text.size() > 2 && text[2] == '\x95';
    const std::size_t begin = std::min(text.size(), 2 + (has_frame ? size_of_frame : 0));
    if (text.substr(begin, magic.size()) != magic) {
      fail(ErrorCode::Unsupported, "does not begin as the files of torch.save do");
    }
    rest_ = rest_.subspan(begin + magic.size());
    check_version();
    check_machine();
    const Pickled object = next("object");
    find_storages(object);
    const auto find = [this](const PickledStorage& storage) -> TorchStorage {
      const auto found = storages_.find(storage.key);
      const std::string name = "storage " + bytes::quote(storage.key);
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
        fail(ErrorCode::Unsupported, fmt::format("storage {} is a part of another, as before PyTorch 0.4",
                                                 bytes::quote(storage.key)));
      }
      named.emplace(storage.key, &storage);
    }
    const Pickled keys = next("keys");
    if (keys.root.kind != Kind::list) fail(ErrorCode::Format, "its fifth pickle is not a list");
    for (const PickleValue& key : keys.containers[keys.root.index]) {
      const auto found = key.kind == Kind::text ? named.find(key.text) : named.end();
      if (found == named.end()) {
        fail(ErrorCode::Format, fmt::format("lists storage {}, which no tensor has", bytes::quote(key.text)));
      }
      const PickledStorage& storage = *found->second;
      const std::string quoted = bytes::quote(storage.key);
      const auto count = bytes::load<std::uint64_t>(take(sizeof(std::uint64_t), quoted));
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
    return bytes::take_front(rest_, static_cast<std::size_t>(size));
  }

  [[noreturn]] void fail(ErrorCode code, const std::string& what) const { bytes::fail(code, where_, what); }

  Bytes rest_;
  const std::string& where_;
  ParsedFile file_;
  std::map<std::string_view, Bytes> storages_;
};

}  // namespace

ParsedFile parse_torch_legacy(Bytes bytes, const std::string& where, std::string_view member) {
  return LegacyReader(bytes, where).read(member);
}

}  // namespace normscope::checkpoint
