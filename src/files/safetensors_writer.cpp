#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/core/error.hpp>
#include <normscope/files/safetensors.hpp>

#include "parsed_file.hpp"

namespace normscope::files {
namespace {

/// `text` as a JSON string.
std::string json_string(const std::string& text, const std::string& where) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw Error(ErrorCode::Argument, fmt::format("{}: {} is not UTF-8", where, quote(text)));
  }
}

/// Bytes of a tensor; empty if they are too many or no whole number.
std::optional<std::uint64_t> byte_count(std::span<const std::uint64_t> shape, Dtype dtype) {
  const std::optional<std::uint64_t> elements = element_count(shape);
  std::uint64_t size_bits = 0;
  if (!elements || __builtin_mul_overflow(*elements, bits(dtype), &size_bits) || size_bits % 8 != 0)
    return {};
  return size_bits / 8;
}

void check_size(const NewTensor& tensor, const std::string& where) {
  if (byte_count(tensor.shape, tensor.dtype) == tensor.bytes.size()) return;
  const std::optional<std::uint64_t> elements = element_count(tensor.shape);
  std::uint64_t size_bits = 0;
  const bool fits = elements && !__builtin_mul_overflow(*elements, bits(tensor.dtype), &size_bits);
  throw Error(ErrorCode::Shape,
              fmt::format("{}: tensor {} has {} bytes, expected {} elements of {}", where, quote(tensor.name),
                          tensor.bytes.size(), fits ? std::to_string(*elements) : "too many",
                          to_string(tensor.dtype)));
}

std::uint64_t size_of(const TensorHeader& tensor, const std::string& where) {
  const std::optional<std::uint64_t> size = byte_count(tensor.shape, tensor.dtype);
  if (size) return *size;
  throw Error(ErrorCode::Shape,
              fmt::format("{}: tensor {} has no size in whole bytes", where, quote(tensor.name)));
}

/// Sorts in the order of the reference implementation: descending by the alignment rank of the dtype, then by
/// name.
void put_in_file_order(std::vector<TensorHeader>& tensors, const std::string& where) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorHeader& a, const TensorHeader& b) { return a.name < b.name; });
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string& name = tensors[i].name;
    if (i > 0 && tensors[i - 1].name == name) {
      throw Error(ErrorCode::Argument, fmt::format("{}: two tensors are named {}", where, quote(name)));
    }
    if (name == "__metadata__") {
      throw Error(ErrorCode::Argument, where + ": a tensor is named __metadata__, which the format reserves");
    }
  }
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const TensorHeader& a, const TensorHeader& b) { return a.dtype > b.dtype; });
}

std::string header_of(const std::vector<TensorHeader>& tensors,
                      const std::map<std::string, std::string, std::less<>>& metadata,
                      const std::string& where) {
  std::string header = "{";
  const auto separate = [&header] {
    if (header.back() != '{') header += ',';
  };
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      separate();
      header += json_string(key, where) + ':' + json_string(value, where);
    }
    header += '}';
  }
  std::uint64_t begin = 0;
  for (const TensorHeader& tensor : tensors) {
    separate();
    const std::uint64_t end = begin + size_of(tensor, where);
    header += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}",
                          json_string(tensor.name, where), to_string(tensor.dtype),
                          nlohmann::json(tensor.shape).dump(), begin, end);
    begin = end;
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > longest_safetensors_header) {
    throw Error(ErrorCode::Argument, fmt::format("{}: header would take {} bytes, the format allows {}",
                                                 where, header.size(), longest_safetensors_header));
  }
  return header;
}

/// Files of this size and more would take the page cache away from others.
constexpr std::uint64_t large_file = std::uint64_t{1} << 24U;

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorHeader> tensors,
                                     const std::map<std::string, std::string, std::less<>>& metadata,
                                     Watch watch)
    : tensors_(std::move(tensors)), watch_(std::move(watch)), file_(path) {
  const std::string where = "write_safetensors: " + path.string();
  put_in_file_order(tensors_, where);
  const std::string header = header_of(tensors_, metadata, where);
  for (const TensorHeader& tensor : tensors_) missing_ += size_of(tensor, where);
  if (missing_ >= large_file) file_.bypass_cache();
  const std::uint64_t length = header.size();
  char encoded_length[sizeof length];
  std::memcpy(encoded_length, &length, sizeof length);
  append(std::as_bytes(std::span(encoded_length)));
  append(std::as_bytes(std::span(header)));
}

void SafetensorsWriter::append(std::span<const std::byte> bytes) {
  if (watch_) watch_(bytes);
  file_.write(bytes);
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  NORMSCOPE_ASSERT(bytes.size() <= missing_);
  missing_ -= bytes.size();
  append(bytes);
}

void SafetensorsWriter::commit() {
  NORMSCOPE_ASSERT(missing_ == 0);
  file_.commit();
}

void write_safetensors(const std::filesystem::path& path, std::span<const NewTensor> tensors,
                       const std::map<std::string, std::string, std::less<>>& metadata) {
  const std::string where = "write_safetensors: " + path.string();
  std::vector<TensorHeader> headers;
  headers.reserve(tensors.size());
  std::map<std::string_view, std::span<const std::byte>> bytes_of;
  for (const NewTensor& tensor : tensors) {
    check_size(tensor, where);
    headers.push_back({tensor.name, tensor.dtype, tensor.shape});
    bytes_of.emplace(tensor.name, tensor.bytes);
  }
  SafetensorsWriter writer(path, std::move(headers), metadata);
  for (const TensorHeader& tensor : writer.order()) writer.write(bytes_of.at(tensor.name));
  writer.commit();
}

}  // namespace normscope::files
