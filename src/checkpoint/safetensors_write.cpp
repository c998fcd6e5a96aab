#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <normscope/bytes/quote.hpp>
#include <normscope/bytes/shape.hpp>
#include <normscope/checkpoint/safetensors.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

#include "safetensors_header.hpp"

namespace normscope::checkpoint {
namespace {

/// `text` as a JSON string.
std::string json_string(const std::string& text, const std::string& where) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw Error(ErrorCode::Argument, fmt::format("{}: {} is not UTF-8", where, bytes::quote(text)));
  }
}

void check_size(const NewTensor& tensor, const std::string& where) {
  const std::optional<std::uint64_t> elements = bytes::element_count(tensor.shape);
  std::uint64_t size_bits = 0;
  const bool fits = elements && !__builtin_mul_overflow(*elements, bits(tensor.dtype), &size_bits);
  if (!fits || size_bits % 8 != 0 || size_bits / 8 != tensor.bytes.size()) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: tensor {} has {} bytes, expected {} elements of {}", where,
                            bytes::quote(tensor.name), tensor.bytes.size(),
                            fits ? std::to_string(*elements) : "too many", to_string(tensor.dtype)));
  }
}

/// The order of the reference implementation: descending by the alignment rank of the dtype, then by name.
std::vector<const NewTensor*> in_file_order(std::span<const NewTensor> tensors, const std::string& where) {
  std::vector<const NewTensor*> order;
  order.reserve(tensors.size());
  for (const NewTensor& tensor : tensors) order.push_back(&tensor);
  const auto by_name = [](const NewTensor* a, const NewTensor* b) { return a->name < b->name; };
  std::sort(order.begin(), order.end(), by_name);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string& name = order[i]->name;
    if (i > 0 && order[i - 1]->name == name) {
      throw Error(ErrorCode::Argument,
                  fmt::format("{}: two tensors are named {}", where, bytes::quote(name)));
    }
    if (name == "__metadata__") {
      throw Error(ErrorCode::Argument, where + ": a tensor is named __metadata__, which the format reserves");
    }
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const NewTensor* a, const NewTensor* b) { return a->dtype > b->dtype; });
  return order;
}

std::string header_of(const std::vector<const NewTensor*>& tensors,
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
  for (const NewTensor* tensor : tensors) {
    separate();
    const std::uint64_t end = begin + tensor->bytes.size();
    header += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}",
                          json_string(tensor->name, where), to_string(tensor->dtype),
                          nlohmann::json(tensor->shape).dump(), begin, end);
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

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const NewTensor> tensors,
                       const std::map<std::string, std::string, std::less<>>& metadata) {
  const std::string where = "write_safetensors: " + path.string();
  for (const NewTensor& tensor : tensors) check_size(tensor, where);
  const std::vector<const NewTensor*> order = in_file_order(tensors, where);
  const std::string header = header_of(order, metadata, where);

  const std::uint64_t length = header.size();
  char length_bytes[sizeof length];
  std::memcpy(length_bytes, &length, sizeof length);
  AtomicFile file(path);
  file.write({length_bytes, sizeof length_bytes});
  file.write(header);
  for (const NewTensor* tensor : order) file.write(tensor->bytes);
  file.commit();
}

}  // namespace normscope::checkpoint
