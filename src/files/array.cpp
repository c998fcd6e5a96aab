#include <normscope/files/array.hpp>

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <normscope/files/quote.hpp>

#include "idx_elements.hpp"
#include "npy.hpp"
#include "npz.hpp"

namespace normscope::files {

StoredArray open_npy(std::shared_ptr<const MappedFile> file, const std::string& where) {
  const NpyArray found = parse_npy(file->bytes(), where);
  return {found.header.shape, found.header.dtype,
          [file = std::move(file), found](std::vector<std::byte>& buffer) {
            return npy_elements(found.header, found.data, buffer);
          }};
}

StoredArray open_idx(const MappedFile& file, const std::string& where) {
  auto found = std::make_shared<const IdxElements>(read_idx_elements(file.bytes(), where));
  return {found->shape, found->dtype,
          [found](std::vector<std::byte>&) { return std::span<const std::byte>(found->bytes); }};
}

namespace {

/// The elements of a member that is unpacked as a whole.
std::span<const std::byte> unpacked_elements(std::span<const std::byte> bytes, const ZipMember& member,
                                             const std::string& where, const NpyHeader& header,
                                             std::vector<std::byte>& buffer) {
  std::vector<std::byte> data = read_npz_data(bytes, member, where);
  const std::span<const std::byte> elements = npy_elements(header, data, buffer);
  if (elements.data() == data.data()) buffer = std::move(data);
  return buffer;
}

}  // namespace

StoredArray open_npz_member(std::shared_ptr<const MappedFile> file, const ZipMember& member,
                            const std::string& where) {
  const NpyHeader header = read_npz_header(file->bytes(), member, where);
  return {header.shape, header.dtype,
          [file = std::move(file), member, where, header](std::vector<std::byte>& buffer) {
            return unpacked_elements(file->bytes(), member, where, header, buffer);
          }};
}

StoredArray open_npz_member(std::span<const std::byte> bytes, const ZipMember& member,
                            const std::string& where) {
  if (member.method != zip_stored) {
    const NpyHeader header = read_npz_header(bytes, member, where);
    return {header.shape, header.dtype, [bytes, member, where, header](std::vector<std::byte>& buffer) {
              return unpacked_elements(bytes, member, where, header, buffer);
            }};
  }
  const NpyArray found = parse_npy(stored_member(bytes, member, where).memory(),
                                   fmt::format("{}: member {}", where, quote(member.name)));
  StoredArray array{found.header.shape, found.header.dtype, [found](std::vector<std::byte>& buffer) {
                      return npy_elements(found.header, found.data, buffer);
                    }};
  const auto long_axes =
      std::count_if(array.shape.begin(), array.shape.end(), [](std::uint64_t n) { return n != 1; });
  if (!found.header.big_endian && (!found.header.fortran_order || long_axes < 2)) array.in_place = found.data;
  return array;
}

const ZipMember* find_npz_member(std::span<const ZipMember> members, std::string_view name) {
  for (const std::string& spelling : {std::string(name), std::string(name) + ".npy"}) {
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&spelling](const ZipMember& member) { return member.name == spelling; });
    if (found != members.end()) return &*found;
  }
  return nullptr;
}

Array read(const StoredArray& array) {
  std::vector<std::byte> buffer;
  const std::span<const std::byte> elements = array.fetch(buffer);
  std::uint64_t count = 1;
  // Every format has checked the product against the size of the file.
  for (const std::uint64_t extent : array.shape) count *= extent;
  std::vector<double> values(static_cast<std::size_t>(count));
  decode(array.dtype, elements, values);
  return {array.shape, array.dtype, std::move(values)};
}

}  // namespace normscope::files
