#include <normscope/files/zip.hpp>

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/source.hpp>
#include "parsed_file.hpp"

namespace normscope::files {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t local_magic = 0x04034b50;
constexpr std::uint32_t directory_magic = 0x02014b50;
constexpr std::uint32_t end_magic = 0x06054b50;
constexpr std::uint32_t end64_magic = 0x06064b50;
constexpr std::uint32_t locator64_magic = 0x07064b50;
constexpr std::size_t end_size = 22;
constexpr std::size_t locator64_size = 20;
constexpr std::uint16_t in_zip64_16 = 0xffff;
constexpr std::uint32_t in_zip64_32 = 0xffffffff;

/// That part of the file, after a check that it lies within it.
StoredBytes part_of(const StoredBytes& bytes, std::uint64_t begin, std::uint64_t size, std::string_view what,
                    const std::string& where) {
  if (begin > bytes.size() || size > bytes.size() - begin) {
    fail(ErrorCode::Format, where,
         fmt::format("zip: {} at byte {} extends beyond the file, which has {} bytes", what, begin,
                     bytes.size()));
  }
  return bytes.part(begin, size);
}

/// Takes little-endian numbers one after another.
class Fields {
 public:
  Fields(Bytes bytes, std::string_view what, const std::string& where)
      : rest_(bytes), what_(what), where_(where) {}

  Bytes bytes(std::size_t size) {
    if (size > rest_.size()) fail(ErrorCode::Format, where_, fmt::format("zip: {} is truncated", what_));
    return take_front(rest_, size);
  }
  template <typename Number>
  Number number() {
    return load<Number>(bytes(sizeof(Number)));
  }
  [[nodiscard]] bool empty() const { return rest_.empty(); }

 private:
  Bytes rest_;
  std::string_view what_;
  const std::string& where_;
};

struct Directory {
  std::uint64_t entries = 0;
  std::uint64_t size = 0;
  std::uint64_t begin = 0;
};

/// The offset of the end record: the last position at which its comment reaches the end of `tail`, the end of
/// the file.
std::size_t find_end(Bytes tail, const std::string& where) {
  for (std::size_t comment = 0; comment + end_size <= tail.size(); ++comment) {
    const std::size_t at = tail.size() - end_size - comment;
    Fields fields(tail.subspan(at, end_size), "end record", where);
    if (fields.number<std::uint32_t>() != end_magic) continue;
    fields.bytes(16);
    if (fields.number<std::uint16_t>() == comment) return at;
  }
  fail(ErrorCode::Format, where, "zip: has no end record; the file is truncated");
}

Directory read_end64(const StoredBytes& bytes, std::uint64_t begin, const std::string& where) {
  std::vector<std::byte> buffer;
  Fields fields(part_of(bytes, begin, 56, "zip64 end record", where).fetch(buffer), "zip64 end record",
                where);
  if (fields.number<std::uint32_t>() != end64_magic)
    fail(ErrorCode::Format, where, "zip: has no zip64 end record");
  fields.bytes(28);
  Directory directory;
  directory.entries = fields.number<std::uint64_t>();
  directory.size = fields.number<std::uint64_t>();
  directory.begin = fields.number<std::uint64_t>();
  return directory;
}

Directory find_directory(const StoredBytes& bytes, const std::string& where) {
  constexpr std::uint64_t longest_comment = 0xffff;
  const std::uint64_t last = std::min(bytes.size(), locator64_size + end_size + longest_comment);
  std::vector<std::byte> buffer;
  const Bytes tail = bytes.part(bytes.size() - last, last).fetch(buffer);
  const std::size_t end = find_end(tail, where);
  Fields fields(tail.subspan(end, end_size), "end record", where);
  fields.bytes(4);
  const auto disk = fields.number<std::uint16_t>();
  fields.bytes(4);
  Directory directory;
  directory.entries = fields.number<std::uint16_t>();
  directory.size = fields.number<std::uint32_t>();
  directory.begin = fields.number<std::uint32_t>();
  const bool is_zip64 =
      directory.entries == in_zip64_16 || directory.size == in_zip64_32 || directory.begin == in_zip64_32;
  if (is_zip64 && end >= locator64_size) {
    Fields locator(tail.subspan(end - locator64_size, locator64_size), "zip64 locator", where);
    if (locator.number<std::uint32_t>() == locator64_magic) {
      locator.bytes(4);
      return read_end64(bytes, locator.number<std::uint64_t>(), where);
    }
  }
  if (disk != 0)
    fail(ErrorCode::Unsupported, where, "zip: is one part of a multi-part archive, expected a single file");
  return directory;
}

/// Sizes and offset that do not fit into 32 bits, from the zip64 extra field, in this order.
void apply_zip64(ZipMember& member, Bytes extra, const std::string& where) {
  const bool has_size = member.size == in_zip64_32;
  const bool has_packed = member.packed_size == in_zip64_32;
  const bool has_offset = member.local_header == in_zip64_32;
  Fields fields(extra, "extra field", where);
  while (!fields.empty()) {
    const auto tag = fields.number<std::uint16_t>();
    const auto size = fields.number<std::uint16_t>();
    const Bytes content = fields.bytes(size);
    if (tag != 1) continue;
    Fields numbers(content, "zip64 field", where);
    if (has_size) member.size = numbers.number<std::uint64_t>();
    if (has_packed) member.packed_size = numbers.number<std::uint64_t>();
    if (has_offset) member.local_header = numbers.number<std::uint64_t>();
    return;
  }
}

ZipMember read_entry(Fields& fields, const std::string& where) {
  if (fields.number<std::uint32_t>() != directory_magic) {
    fail(ErrorCode::Format, where, "zip: directory has no entry where one was expected");
  }
  ZipMember member;
  fields.bytes(4);
  member.flags = fields.number<std::uint16_t>();
  member.method = fields.number<std::uint16_t>();
  fields.bytes(4);
  member.crc = fields.number<std::uint32_t>();
  member.packed_size = fields.number<std::uint32_t>();
  member.size = fields.number<std::uint32_t>();
  const auto name_size = fields.number<std::uint16_t>();
  const auto extra_size = fields.number<std::uint16_t>();
  const auto comment_size = fields.number<std::uint16_t>();
  fields.bytes(8);
  member.local_header = fields.number<std::uint32_t>();
  const Bytes name = fields.bytes(name_size);
  member.name = {reinterpret_cast<const char*>(name.data()), name.size()};
  apply_zip64(member, fields.bytes(extra_size), where);
  fields.bytes(comment_size);
  return member;
}

}  // namespace

StoredBytes packed_bytes(const StoredBytes& bytes, const ZipMember& member, const std::string& where) {
  constexpr std::uint64_t local_size = 30;
  const std::string header = "local header of " + quote(member.name);
  std::vector<std::byte> buffer;
  Fields fields(part_of(bytes, member.local_header, local_size, header, where).fetch(buffer), header, where);
  if (fields.number<std::uint32_t>() != local_magic) {
    fail(ErrorCode::Format, where, fmt::format("zip: member {} has no local header", quote(member.name)));
  }
  fields.bytes(22);
  const std::uint64_t name_size = fields.number<std::uint16_t>();
  const std::uint64_t extra_size = fields.number<std::uint16_t>();
  const std::uint64_t begin = member.local_header + local_size + name_size + extra_size;
  return part_of(bytes, begin, member.packed_size, "data", where);
}

std::vector<ZipMember> read_zip_directory(Bytes bytes, const std::string& where) {
  std::vector<std::byte> unused;
  return read_zip_directory(StoredBytes(bytes), unused, where);
}

std::vector<ZipMember> read_zip_directory(const StoredBytes& bytes, std::vector<std::byte>& held,
                                          const std::string& where) {
  const Directory directory = find_directory(bytes, where);
  const StoredBytes stored = part_of(bytes, directory.begin, directory.size, "directory", where);
  Fields fields(stored.fetch(held), "directory", where);
  std::vector<ZipMember> members;
  for (std::uint64_t i = 0; i < directory.entries; ++i) members.push_back(read_entry(fields, where));

  std::vector<std::string_view> names;
  names.reserve(members.size());
  for (const ZipMember& member : members) names.push_back(member.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    fail(ErrorCode::Format, where, fmt::format("zip: member {} appears twice", quote(*twice)));
  return members;
}

StoredBytes stored_member(const StoredBytes& bytes, const ZipMember& member, const std::string& where) {
  if ((member.flags & 1) != 0 || member.method != zip_stored) {
    fail(ErrorCode::Unsupported, where,
         fmt::format("zip: member {} is compressed or encrypted, expected it stored", quote(member.name)));
  }
  if (member.packed_size != member.size) {
    fail(ErrorCode::Format, where,
         fmt::format("zip: member {} is stored in {} bytes, its size is {}", quote(member.name),
                     member.packed_size, member.size));
  }
  return packed_bytes(bytes, member, where);
}

}  // namespace normscope::files
