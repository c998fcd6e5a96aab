#include <normscope/files/array.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/source.hpp>

#include "file_format.hpp"
#include "parsed_file.hpp"
#include "readers.hpp"

namespace normscope::files {
namespace {

constexpr std::size_t pixels = 3072;
constexpr int classes = 10;

}  // namespace

LabelledImages read_cifar10(std::span<const std::byte> bytes, const std::string& where) {
  PackedSource source(bytes, where);
  LabelledImages result{{{}, Dtype::U8, {}}, {{}, Dtype::U8, {}}};
  std::array<std::byte, 1 + pixels> record{};
  std::uint64_t rows = 0;
  for (; const std::size_t count = source.take(record); ++rows) {
    if (count != record.size()) {
      throw Error(ErrorCode::Format,
                  fmt::format("{}: ends within record {}, expected records of 3073 bytes", where, rows));
    }
    const int label = std::to_integer<int>(record[0]);
    if (label >= classes) {
      throw Error(ErrorCode::Format,
                  fmt::format("{}: the class of record {} is {}, expected 0 to 9", where, rows, label));
    }
    result.labels.values.push_back(label);
    for (std::size_t i = 1; i <= pixels; ++i) {
      result.images.values.push_back(std::to_integer<int>(record[i]));
    }
  }
  source.finish();
  if (rows == 0) throw Error(ErrorCode::Format, fmt::format("{}: has no records", where));
  result.labels.shape = {rows};
  result.images.shape = {rows, 3, 32, 32};
  return result;
}

namespace {

using Bytes = std::span<const std::byte>;

std::optional<Dtype> element_type(std::byte code) {
  switch (std::to_integer<int>(code)) {
    case 0x08: return Dtype::U8;
    case 0x09: return Dtype::I8;
    case 0x0b: return Dtype::I16;
    case 0x0c: return Dtype::I32;
    case 0x0d: return Dtype::F32;
    case 0x0e: return Dtype::F64;
    default: return std::nullopt;
  }
}

}  // namespace

IdxElements read_idx_elements(Bytes bytes, const std::string& where) {
  if (bytes.size() > 0xffffffffU)
    fail(ErrorCode::Unsupported, where, "is larger than 4 GiB, which is not supported");
  PackedSource source(bytes, where);
  std::byte magic[4];
  source.read(magic);
  const std::optional<Dtype> dtype = element_type(magic[2]);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || !dtype || magic[3] == std::byte{0}) {
    fail(
        ErrorCode::Format, where,
        "is not an IDX file, expected it to begin with two zero bytes, an element type and a number of axes");
  }
  IdxElements array;
  array.dtype = *dtype;
  for (int axis = 0; axis < std::to_integer<int>(magic[3]); ++axis) {
    std::byte length[4];
    source.read(length);
    std::uint64_t extent = 0;
    for (const std::byte byte : length) extent = extent << 8 | std::to_integer<std::uint64_t>(byte);
    array.shape.push_back(extent);
  }
  const std::optional<std::uint64_t> elements = element_count(array.shape);
  const std::size_t size = bits(*dtype) / 8;
  if (!elements || *elements > 0xffffffffffffU) {
    fail(ErrorCode::Format, where, "has fewer bytes than the elements that its header states");
  }
  source.require(*elements * size);
  std::vector<std::byte>& data = array.bytes;
  data.resize(*elements * size);
  source.read(data);
  source.finish();
  for (std::size_t at = 0; size > 1 && at < data.size(); at += size) {
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(at),
                 data.begin() + static_cast<std::ptrdiff_t>(at + size));
  }
  return array;
}

Array read_idx(Bytes bytes, const std::string& where) {
  IdxElements found = read_idx_elements(bytes, where);
  std::vector<double> values(found.bytes.size() / (bits(found.dtype) / 8));
  decode(found.dtype, found.bytes, values);
  return {std::move(found.shape), found.dtype, std::move(values)};
}

namespace formats {

extern const FileFormat idx{
    .name = "IDX array", .named = [](const std::filesystem::path& path) {
      const std::string file = path.filename().string();
      for (const std::string_view ending : {"-ubyte", "-ubyte.gz", ".idx", ".idx.gz"}) {
        if (file.ends_with(ending)) return true;
      }
      return false;
    }};

}  // namespace formats

}  // namespace normscope::files
