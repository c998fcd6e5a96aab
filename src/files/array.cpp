#include <normscope/files/array.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/text.hpp>
#include <normscope/files/source.hpp>

#include "npy.hpp"
#include "readers.hpp"

namespace normscope::files {
namespace {

constexpr const char* digits = "0123456789+-.eE";

double parse_number(const std::string& word, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0' || !std::isfinite(value)) {
    throw Error(ErrorCode::Argument,
                fmt::format("array: {}: {} is not a finite number", quote(text), quote(word)));
  }
  // A value that underflows to zero would change the meaning, such as a gain that erases its feature.
  if (value == 0.0 &&
      word.substr(0, word.find_first_of("eE")).find_first_of("123456789") != std::string::npos) {
    throw Error(ErrorCode::Argument,
                fmt::format("array: {}: {} is nearer to zero than any float64", quote(text), quote(word)));
  }
  return value;
}

/// nan, inf or infinity, in any case and with any sign.
bool is_not_finite(std::string_view word) {
  if (word.starts_with('+') || word.starts_with('-')) word.remove_prefix(1);
  std::string lower(word);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower == "nan" || lower == "inf" || lower == "infinity";
}

/// Whether the words between commas and semicolons consist of the characters of numbers.
bool is_written(const std::string& text) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(",;", at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word.find_first_not_of(digits) != std::string::npos && !is_not_finite(word)) return false;
    at = end + 1;
  }
  return true;
}

}  // namespace

bool is_one_number(const std::string& text) {
  return !text.empty() && text.find_first_of(",;") == std::string::npos && is_written(text);
}

std::optional<Array> parse_written(const std::string& text) {
  if (text.find_first_of(",;") == std::string::npos || !is_written(text)) return std::nullopt;
  Array array;
  std::uint64_t rows = 0;
  std::uint64_t width = 0;
  for (std::size_t at = 0; at <= text.size(); ++rows) {
    const std::size_t row_end = std::min(text.find(';', at), text.size());
    std::uint64_t count = 0;
    for (; at <= row_end; ++count) {
      const std::size_t end = std::min(text.find(',', at), row_end);
      array.values.push_back(parse_number(text.substr(at, end - at), text));
      at = end + 1;
    }
    if (rows == 0) width = count;
    if (count != width) {
      throw Error(ErrorCode::Shape, fmt::format("array: {}: row {} has {} numbers, the first one {}",
                                                quote(text), rows, count, width));
    }
  }
  if (text.find(';') == std::string::npos) {
    array.shape = {width};
  } else {
    array.shape = {rows, width};
  }
  return array;
}

std::string quote(std::string_view name) {
  constexpr std::size_t longest = 100;
  std::size_t length = name.size();
  if (length > longest) {
    length = longest;
    while (length > 0 && (static_cast<unsigned char>(name[length]) & 0xc0) == 0x80) --length;
  }
  std::string quoted = "\"" + printable(name.substr(0, length));
  quoted += length < name.size() ? "...\"" : "\"";
  return quoted;
}

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
