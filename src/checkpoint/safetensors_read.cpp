#include <algorithm>
#include <numeric>

#include <fmt/core.h>

#include <normscope/bytes/fail.hpp>
#include <normscope/bytes/little_endian.hpp>
#include <normscope/bytes/quote.hpp>
#include <normscope/checkpoint/safetensors.hpp>
#include <normscope/core/error.hpp>

#include "parsed_file.hpp"
#include "safetensors_header.hpp"

namespace normscope::checkpoint {
namespace {

constexpr std::size_t length_bytes = 8;
// The JSON library holds several copies of the token that it reads, so the token's length is limited first.
constexpr std::size_t longest_string = std::size_t{4} << 20;
constexpr std::size_t longest_run = std::size_t{64} << 10;

struct Parts {
  std::string_view header;  ///< without white space around it
  bytes::StoredBytes data;
};

/// `buffer` receives the header of a file that is not in memory.
Parts split(const bytes::StoredBytes& file, const std::string& where, std::vector<std::byte>& buffer) {
  const auto reject = [&where](const std::string& what) { bytes::fail(ErrorCode::Format, where, what); };
  if (file.size() < length_bytes) {
    reject(fmt::format("file has {} bytes, expected at least {}", file.size(), length_bytes));
  }
  const auto length = bytes::load<std::uint64_t>(file.part(0, length_bytes).fetch(buffer));
  if (length > longest_safetensors_header) {
    reject(fmt::format("header length is {}, expected at most {}", length, longest_safetensors_header));
  }
  if (length > file.size() - length_bytes) {
    reject(fmt::format("header ends at byte {}, file has {}", length_bytes + length, file.size()));
  }
  const std::span<const std::byte> bytes = file.part(length_bytes, length).fetch(buffer);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.empty()) reject("header is empty, expected a JSON object");
  // The reference implementation writes spaces behind the object, and reads any white space of JSON around
  // it.
  constexpr std::string_view white = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(white), text.size() - 1);
  const std::string_view object = text.substr(begin, text.find_last_not_of(white) + 1 - begin);
  if (object.empty() || object.front() != '{') {
    reject(fmt::format("header begins with byte 0x{:02x}, expected '{{'",
                       static_cast<unsigned char>(text[begin])));
  }
  if (object.back() != '}') {
    reject(fmt::format("header ends with byte 0x{:02x}, expected '}}' and then only white space",
                       static_cast<unsigned char>(object.back())));
  }
  const std::uint64_t data_begin = length_bytes + length;
  return {object, file.part(data_begin, file.size() - data_begin)};
}

void bound_tokens(std::string_view text, const std::string& where) {
  bool in_string = false;
  std::size_t begin = 0;  // start of the string, or of the text after the last string or comma
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (i - begin >= (in_string ? longest_string : longest_run)) {
      bytes::fail(
          ErrorCode::Unsupported, where,
          in_string
              ? fmt::format("header has a string of more than {} bytes at byte {}", longest_string, begin)
              : fmt::format("header has more than {} bytes without a string or comma at byte {}", longest_run,
                            begin));
    }
    if (c == '"') {
      in_string = !in_string;
      begin = i;
    } else if (in_string && c == '\\') {
      ++i;
    } else if (!in_string && c == ',') {
      begin = i;
    }
  }
}

/// Tensors must fill the data without gaps or overlaps.
void check_layout(const std::vector<Tensor>& tensors, const bytes::StoredBytes& data,
                  const std::string& where) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const bytes::StoredBytes& left = tensors[a].bytes;
    const bytes::StoredBytes& right = tensors[b].bytes;
    const std::uint64_t left_begin = left.offset_in(data);
    const std::uint64_t right_begin = right.offset_in(data);
    return left_begin != right_begin ? left_begin < right_begin : left.size() < right.size();
  });
  std::uint64_t filled = 0;
  for (const std::uint32_t index : order) {
    const Tensor& tensor = tensors[index];
    const std::uint64_t begin = tensor.bytes.offset_in(data);
    if (begin != filled) {
      bytes::fail(ErrorCode::Format, where,
                  fmt::format("tensor {} begins at byte {}, expected {}, where the one before ends ({})",
                              bytes::quote(tensor.name), begin, filled, begin < filled ? "overlap" : "hole"));
    }
    filled = begin + tensor.bytes.size();
  }
  if (filled != data.size()) {
    bytes::fail(ErrorCode::Format, where,
                fmt::format("tensors end at byte {}, data has {}", filled, data.size()));
  }
}

}  // namespace

SafetensorsContents parse_safetensors(const bytes::StoredBytes& file, const std::string& where) {
  SafetensorsContents contents;
  const auto [header, data] = split(file, where, contents.header);
  bound_tokens(header, where);

  const auto memory_limit =
      static_cast<std::size_t>(std::min(file.size(), bytes::largest_held)) + memory_beyond_file;
  const HeaderSizes sizes = SafetensorsHeader(header, data, where, memory_limit, nullptr).read();
  contents.tensors.reserve(sizes.tensors);
  contents.extents.reserve(sizes.extents);
  contents.escaped_names.reserve(sizes.escaped_bytes);
  SafetensorsHeader(header, data, where, memory_limit, &contents).read();

  sort_tensors(contents.tensors, where + ": header");
  check_layout(contents.tensors, data, where);
  return contents;
}

}  // namespace normscope::checkpoint
