#include "npz.hpp"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/quote.hpp>

#include "npy.hpp"

namespace normscope::files {

namespace {

/// The header in front of `stream`, which then stands at the elements.
NpyHeader take_header(ZipStream& stream, const ZipMember& member, const std::string& zip_where) {
  const std::string where = fmt::format("{}: member {}", zip_where, quote(member.name));
  std::vector<std::byte> before_data(std::min<std::uint64_t>(member.size, npy_prefix));
  stream.read(before_data);
  const std::size_t begin = npy_data_begin(before_data, where);
  if (begin > member.size) {
    throw Error(ErrorCode::Format,
                fmt::format("{}: header ends at byte {}, member has {}", where, begin, member.size));
  }
  before_data.resize(begin);
  stream.read(std::span(before_data).subspan(npy_prefix));
  NpyHeader header = parse_npy_header(before_data, where);
  check_data_size(header, member.size - begin, where);
  return header;
}

}  // namespace

NpyHeader read_npz_header(std::span<const std::byte> bytes, const ZipMember& member,
                          const std::string& where) {
  ZipStream stream(bytes, member, where);
  return take_header(stream, member, where);
}

std::vector<std::byte> read_npz_data(std::span<const std::byte> bytes, const ZipMember& member,
                                     const std::string& where) {
  ZipStream stream(bytes, member, where);
  const NpyHeader header = take_header(stream, member, where);
  if (header.data_bytes() > most_unpacked(member.packed_size)) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("{}: member {}: unpacks to {} bytes from {}, more than the {} that are unpacked; "
                            "store it uncompressed",
                            where, quote(member.name), header.data_bytes(), member.packed_size,
                            most_unpacked(member.packed_size)));
  }
  std::vector<std::byte> data(header.data_bytes());
  stream.read(data);
  stream.finish();
  return data;
}

}  // namespace normscope::files
