#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <normscope/checkpoint/checkpoint.hpp>

namespace normscope::checkpoint {

/// What a file may make its reader hold beyond the file's own size.
inline constexpr std::size_t memory_beyond_file = std::size_t{32} << 20;
/// What an entry of the metadata takes beside its text: a node of the map with two strings, and what an
/// allocator adds to three blocks.
inline constexpr std::size_t metadata_entry_bytes = 160;
/// What a growing vector holds for each element at its worst moment, in elements.
inline constexpr std::size_t growth = 3;

/// Memory that stays where it is as long as the arena lives. What a file makes its reader hold is counted
/// here and ends at the file's size plus `memory_beyond_file`.
class Arena {
 public:
  Arena(std::size_t file_size, std::string where);

  /// Counts `count` objects of `size` bytes that are held elsewhere.
  /// Errors    Unsupported beyond the limit
  void charge(std::uint64_t count, std::size_t size);
  /// `count` objects, zero-initialized.
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

/// The validated contents of one file held in memory. Tensors point into the file's bytes or into the
/// arena.
struct ParsedFile {
  Arena arena;
  std::vector<Tensor> tensors{};  ///< sorted by name
  std::map<std::string, std::string, std::less<>> metadata{};
  std::vector<StatedNorm> norms{};
};

/// Sorts tensors by their names, which must differ.
/// Errors    Format: `who` has a tensor twice
void sort_tensors(std::vector<Tensor>& tensors, const std::string& who);

/// Throws unless `bytes` is what a tensor of that type and shape takes.
/// Errors    Shape; the message begins with `where`
void check_tensor_size(const Tensor& tensor, const std::string& where);

}  // namespace normscope::checkpoint
