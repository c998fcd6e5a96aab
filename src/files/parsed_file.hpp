#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <normscope/files/checkpoint.hpp>
#include <normscope/files/onnx_graph.hpp>

namespace normscope::files {

/// Product of the extents, 1 for none; empty if a partial product overflows.
[[nodiscard]] inline std::optional<std::uint64_t> element_count(std::span<const std::uint64_t> shape) {
  std::uint64_t product = 1;
  for (const std::uint64_t extent : shape) {
    if (__builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  }
  return product;
}

/// Splits off and returns the first `size` bytes of `rest`.
///
/// Requires  size <= rest.size()
[[nodiscard]] inline std::span<const std::byte> take_front(std::span<const std::byte>& rest,
                                                           std::size_t size) {
  const std::span<const std::byte> taken = rest.first(size);
  rest = rest.subspan(size);
  return taken;
}

/// A little-endian number in this machine's representation.
///
/// Requires  bytes.size() == sizeof(Number)
template <typename Number>
[[nodiscard]] Number load(std::span<const std::byte> bytes) {
  Number value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// The longest safetensors header that is read or written, in bytes; readers of the format refuse longer
/// ones.
inline constexpr std::size_t longest_safetensors_header = 100'000'000;

/// Memory that a file may cause its reader to use beyond the file's own size.
inline constexpr std::size_t memory_beyond_file = std::size_t{32} << 20;
/// Memory of a metadata entry besides its text: a map node with two strings, and the overhead of three
/// allocations.
inline constexpr std::size_t metadata_entry_bytes = 160;
/// Peak memory of a growing vector per element, in elements.
inline constexpr std::size_t growth = 3;

/// Memory with stable addresses for the lifetime of the arena. All memory that a file causes its reader to
/// use is counted here, and limited to the file's size plus `memory_beyond_file`.
class Arena {
 public:
  Arena(std::size_t file_size, std::string where);

  /// Counts `count` objects of `size` bytes that are stored elsewhere.
  ///
  /// Errors    Unsupported beyond the limit
  void charge(std::uint64_t count, std::size_t size);
  /// The bytes where they are if they are in memory, otherwise copied.
  ///
  /// Errors    Io; Unsupported beyond the limit
  [[nodiscard]] std::span<const std::byte> keep(const StoredBytes& bytes);
  /// `count` objects, zero-initialized.
  ///
  /// Errors    Unsupported beyond the limit
  template <typename T>
  [[nodiscard]] std::span<T> allocate(std::uint64_t count) {
    return {reinterpret_cast<T*>(allocate_bytes(count, sizeof(T))), static_cast<std::size_t>(count)};
  }

 private:
  std::byte* allocate_bytes(std::uint64_t count, std::size_t size);

  std::string where_;
  std::size_t limit_;
  std::size_t used_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

/// The validated contents of one file. Tensors point into the file's bytes, into the arena or into `views`.
struct ParsedFile {
  Arena arena;
  std::vector<Tensor> tensors{};  ///< sorted by name
  std::map<std::string, std::string, std::less<>> metadata{};
  std::optional<OnnxGraph> graph{};              ///< of ONNX; its constants are elements of `tensors`
  std::vector<std::unique_ptr<Source>> views{};  ///< sources of tensors that are decoded on reading
};

/// Sorts tensors by name; names must be unique.
///
/// Errors    Format: `who` has a tensor twice
void sort_tensors(std::vector<Tensor>& tensors, const std::string& who);

/// Throws unless `bytes` is the size of a tensor of that type and shape.
///
/// Errors    Shape; the message begins with `where`
void check_tensor_size(const Tensor& tensor, const std::string& where);

/// The bytes of elements [offset, offset + count) of `tensor`, flattened row-major.
///
/// Errors    Shape if the range leaves the tensor; Unsupported for a dtype without decoder
[[nodiscard]] StoredBytes encoded(const Tensor& tensor, std::uint64_t offset, std::uint64_t count);

}  // namespace normscope::files
