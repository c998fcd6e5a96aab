#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <normscope/bytes/source.hpp>

#include "hdf5_file.hpp"
#include "unpacked_cache.hpp"

/// Datasets that an HDF5 file stores in chunks: blocks of equal shape on a grid, each packed by filters.
namespace normscope::checkpoint {

/// Largest size of an unpacked chunk.
inline constexpr std::uint64_t largest_hdf5_chunk = std::uint64_t{32} << 20;

/// Consecutive bytes of a file.
struct Hdf5Extent {
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

enum class Hdf5Filter : std::uint16_t { deflate = 1, shuffle = 2 };

/// The filters of a pipeline message, in the order in which they were applied.
///
/// Errors    Unsupported for other filters; the message names `quoted`, the dataset
[[nodiscard]] std::vector<Hdf5Filter> read_hdf5_filters(Hdf5File& file, const Hdf5Message& message,
                                                        const std::string& quoted);

/// A chunk in the file. Bit i of `skipped` says that filter i was not applied.
struct Hdf5Chunk {
  Hdf5Extent stored{};
  std::uint32_t skipped = 0;
};

/// The positions of a dataset's chunks.
struct Hdf5Grid {
  std::vector<std::uint64_t> shape{};   ///< of the dataset; the last axis is the bytes of an element
  std::vector<std::uint64_t> extent{};  ///< of a chunk, likewise
  std::vector<Hdf5Filter> filters{};
  std::span<Hdf5Chunk> chunks{};  ///< row-major

  [[nodiscard]] std::uint64_t chunk_bytes() const;
  /// Number of chunks along an axis.
  [[nodiscard]] std::uint64_t count(std::size_t axis) const {
    return shape[axis] / extent[axis] + (shape[axis] % extent[axis] != 0 ? 1 : 0);
  }
};

/// Fills `grid.chunks` from a tree of chunks, of which none may be missing.
///
/// Errors    Format; Unsupported for missing chunks
void read_hdf5_chunks(Hdf5File& file, std::uint64_t tree, Hdf5Grid& grid, const std::string& quoted);

/// The bytes of a dataset in chunks, row-major, unpacked on request.
class Hdf5Chunked : public bytes::Source {
 public:
  /// `file` outlives the object.
  Hdf5Chunked(std::span<const std::byte> file, Hdf5Grid grid, std::shared_ptr<UnpackedCache> cache,
              std::string where);

  [[nodiscard]] std::uint64_t size() const override { return size_; }
  /// Errors    Format for a chunk that is damaged
  void read(std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  [[nodiscard]] UnpackedCache::Bytes unpacked(const Hdf5Chunk& chunk) const;
  void copy_chunk(std::uint64_t number, std::uint64_t offset, std::span<std::byte> out) const;

  std::span<const std::byte> file_;
  Hdf5Grid grid_;
  std::shared_ptr<UnpackedCache> cache_;
  std::string where_;
  std::uint64_t size_ = 1;
};

/// Elements of `width` bytes in reverse order of bytes.
class SwappedElements : public bytes::Source {
 public:
  SwappedElements(bytes::StoredBytes stored, unsigned width) : stored_(stored), width_(width) {}

  [[nodiscard]] std::uint64_t size() const override { return stored_.size(); }
  /// Requires  offset and out.size() are multiples of the width
  void read(std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  bytes::StoredBytes stored_;
  unsigned width_;
};

}  // namespace normscope::checkpoint
