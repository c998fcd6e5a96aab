#include "parsed_file.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/files/source.hpp>

namespace normscope::files {
namespace {

// The overhead of an allocation, and the pointer to it.
constexpr std::size_t block_overhead = 48;

}  // namespace

Arena::Arena(std::size_t file_size, std::string where)
    : where_(std::move(where)), limit_(file_size + memory_beyond_file) {}

void Arena::charge(std::uint64_t count, std::size_t size) {
  if (size != 0 && count > (limit_ - used_) / size) {
    throw Error(
        ErrorCode::Unsupported,
        fmt::format("{}: the list of its tensors needs more than {} bytes of memory", where_, limit_));
  }
  used_ += static_cast<std::size_t>(count) * size;
}

std::span<const std::byte> Arena::keep(const StoredBytes& bytes) {
  if (bytes.in_memory()) return bytes.memory();
  const std::span<std::byte> kept = allocate<std::byte>(bytes.size());
  bytes.copy_to(kept);
  return kept;
}

std::byte* Arena::allocate_bytes(std::uint64_t count, std::size_t size) {
  charge(1, block_overhead);
  charge(count, size);
  return blocks_.emplace_back(std::make_unique<std::byte[]>(static_cast<std::size_t>(count) * size)).get();
}

void sort_tensors(std::vector<Tensor>& tensors, const std::string& who) {
  std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(tensors.begin(), tensors.end(),
                                        [](const Tensor& a, const Tensor& b) { return a.name == b.name; });
  if (twice != tensors.end()) {
    throw Error(ErrorCode::Format, fmt::format("{} has tensor {} twice", who, quote(twice->name)));
  }
}

void check_tensor_size(const Tensor& tensor, const std::string& where) {
  const std::optional<std::uint64_t> elements = element_count(tensor.shape);
  std::uint64_t expected = 0;
  if (!elements || __builtin_mul_overflow(*elements, bits(tensor.dtype) / 8, &expected)) {
    throw Error(ErrorCode::Shape,
                fmt::format("{}: size of tensor {} overflows 64 bits", where, quote(tensor.name)));
  }
  if (expected != tensor.bytes.size()) {
    throw Error(ErrorCode::Shape, fmt::format("{}: tensor {} has {} bytes, expected {} for {} elements of {}",
                                              where, quote(tensor.name), tensor.bytes.size(), expected,
                                              *elements, to_string(tensor.dtype)));
  }
}

}  // namespace normscope::files
