#include "npz.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "npy.hpp"
#include "quote.hpp"

namespace normscope::checkpoint {

Array read_npz_member(std::span<const std::byte> bytes, const ZipMember& member,
                      const std::string& zip_where) {
  const std::string where = fmt::format("{}: member {}", zip_where, quote(member.name));
  ZipStream stream(bytes, member, zip_where);
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
  std::vector<std::byte> data(header.data_bytes());
  stream.read(data);
  stream.finish();
  return decode_npy(std::move(header), data);
}

}  // namespace normscope::checkpoint
