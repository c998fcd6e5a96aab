#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace normscope::test {

/// The bytes of a number, little-endian.
template <typename Number>
std::string le(Number value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// The text compressed by zlib; `window_bits` selects the wrapper, as for deflateInit2.
inline std::string deflated(const std::string& text, int window_bits) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, window_bits, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string deflate_raw(const std::string& text) { return deflated(text, -MAX_WBITS); }
inline std::string gzip(const std::string& text) { return deflated(text, 16 + MAX_WBITS); }

/// One member with the fields of its two headers; tests set fields to wrong values.
struct ZipEntry {
  explicit ZipEntry(std::string content, std::string member_name = "a.npy")
      : name(std::move(member_name)), packed(content), size(static_cast<std::uint32_t>(content.size())) {
    crc = static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(content.data()), size));
    packed_size = size;
  }
  ZipEntry& deflated() {
    packed = deflate_raw(packed);
    packed_size = static_cast<std::uint32_t>(packed.size());
    method = 8;
    return *this;
  }

  std::string name;
  std::string packed;
  std::uint32_t size;
  std::uint32_t packed_size;
  std::uint32_t crc;
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
  std::uint32_t offset_error = 0;
  std::string extra;
};

/// A zip of these members; its end record may state a wrong position of the directory.
inline std::string zip(const std::vector<ZipEntry>& members, const std::string& comment = "",
                       std::uint32_t directory_error = 0) {
  using namespace std::string_literals;
  std::string file;
  std::string directory;
  for (const ZipEntry& member : members) {
    const std::string shared = le(member.flags) + le(member.method) + "\0\0\0\0"s + le(member.crc) +
                               le(member.packed_size) + le(member.size) +
                               le(static_cast<std::uint16_t>(member.name.size()));
    directory += "PK\1\2\0\0\0\0"s + shared + le(static_cast<std::uint16_t>(member.extra.size())) +
                 std::string(10, '\0') + le(static_cast<std::uint32_t>(file.size() + member.offset_error)) +
                 member.name + member.extra;
    file += "PK\3\4\0\0"s + shared + "\0\0"s + member.name + member.packed;
  }
  const auto count = le(static_cast<std::uint16_t>(members.size()));
  const auto begin = static_cast<std::uint32_t>(file.size() + directory_error);
  return file + directory + "PK\5\6\0\0\0\0"s + count + count +
         le(static_cast<std::uint32_t>(directory.size())) + le(begin) +
         le(static_cast<std::uint16_t>(comment.size())) + comment;
}

}  // namespace normscope::test
