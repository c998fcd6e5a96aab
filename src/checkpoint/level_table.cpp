#include "level_table.hpp"

#include <cstdint>

#include <fmt/core.h>

#include <normscope/bytes/fail.hpp>
#include <normscope/core/error.hpp>

#include "byte_cursor.hpp"
#include "crc32c.hpp"
#include "protobuf.hpp"

namespace normscope::checkpoint {
namespace {

using Bytes = std::span<const std::byte>;
using TakeEntry = std::function<void(std::string_view key, Bytes value)>;

constexpr std::size_t footer_size = 48;
constexpr std::uint64_t longest_key = 4096;
constexpr std::uint64_t table_magic = 0xdb4775248b80fb57u;

class LevelTable {
 public:
  LevelTable(Bytes bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  void read(const TakeEntry& take) {
    if (bytes_.size() < footer_size) {
      fail(ErrorCode::Format,
           fmt::format("has {} bytes, expected a table with a footer of {}", bytes_.size(), footer_size));
    }
    const Bytes footer = bytes_.last(footer_size);
    ByteCursor magic(footer.last(8), "the footer", where_);
    if (magic.number<std::uint64_t>() != table_magic) {
      fail(ErrorCode::Format, "does not end as the index of a TensorFlow checkpoint does");
    }
    WireReader handles(footer.first(footer_size - 8), "footer", where_);
    (void)block_at(handles);  // of meta data
    const std::byte* end = bytes_.data();
    read_entries(block_at(handles), [&](std::string_view, Bytes value) {
      WireReader handle(value, "block handle", where_);
      const Bytes block = block_at(handle);
      if (block.data() < end)
        fail(ErrorCode::Format, "has blocks that are not in the order of their positions");
      end = block.data() + block.size();
      read_entries(block, take);
    });
  }

 private:
  /// The checked bytes of a block, whose position and size are read from `handles`.
  Bytes block_at(WireReader& handle) const {
    const std::uint64_t begin = handle.varint();
    const std::uint64_t size = handle.varint();
    constexpr std::uint64_t trailer = 5;
    if (begin > bytes_.size() || size > bytes_.size() - begin || trailer > bytes_.size() - begin - size) {
      fail(ErrorCode::Format,
           fmt::format("block of {} bytes at byte {} extends beyond the file, which has {}", size, begin,
                       bytes_.size()));
    }
    const Bytes block =
        bytes_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size + trailer));
    ByteCursor checksum(block.last(4), "a checksum", where_);
    if (checksum.number<std::uint32_t>() != masked_crc32c(crc32c(block.first(block.size() - 4)))) {
      fail(ErrorCode::Format,
           fmt::format("block at byte {} does not have the checksum that is stored with it", begin));
    }
    if (block[static_cast<std::size_t>(size)] != std::byte{0}) {
      fail(ErrorCode::Unsupported,
           fmt::format("block at byte {} is compressed, expected it as it is", begin));
    }
    return block.first(static_cast<std::size_t>(size));
  }

  void read_entries(Bytes block, const TakeEntry& take) const {
    constexpr std::size_t count_size = 4;
    if (block.size() < count_size) fail(ErrorCode::Format, "has a block without its list of restarts");
    ByteCursor count(block.last(count_size), "a list of restarts", where_);
    const std::uint64_t restarts = std::uint64_t{count.number<std::uint32_t>()} * 4;
    if (restarts > block.size() - count_size)
      fail(ErrorCode::Format, "has a block shorter than its list of restarts");
    WireReader entries(block.first(block.size() - count_size - static_cast<std::size_t>(restarts)), "block",
                       where_);
    std::string key;
    while (!entries.empty()) {
      const std::uint64_t shared = entries.varint();
      const std::uint64_t own = entries.varint();
      const std::uint64_t value = entries.varint();
      if (shared > key.size())
        fail(ErrorCode::Format, "has a key that shares more bytes than the previous key has");
      key.resize(static_cast<std::size_t>(shared));
      const Bytes rest = entries.raw(own);
      key.append(reinterpret_cast<const char*>(rest.data()), rest.size());
      if (key.size() > longest_key)
        fail(ErrorCode::Unsupported, fmt::format("has a key of more than {} bytes", longest_key));
      take(key, entries.raw(value));
    }
  }

  [[noreturn]] void fail(ErrorCode code, const std::string& what) const { bytes::fail(code, where_, what); }

  Bytes bytes_;
  const std::string& where_;
};

}  // namespace

void read_level_table(Bytes bytes, const std::string& where, const TakeEntry& take) {
  LevelTable(bytes, where).read(take);
}

}  // namespace normscope::checkpoint
