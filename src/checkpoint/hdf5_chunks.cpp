#include "hdf5_chunks.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

#include <normscope/bytes/deflate.hpp>
#include <normscope/bytes/quote.hpp>
#include <normscope/bytes/zip.hpp>
#include <normscope/core/assert.hpp>

namespace normscope::checkpoint {
namespace {

using Bytes = std::span<const std::byte>;

/// Reads the leaves of a tree of chunks into a grid.
class Hdf5ChunkTree {
 public:
  Hdf5ChunkTree(Hdf5File& file, Hdf5Grid& grid, const std::string& quoted)
      : file_(file), grid_(grid), quoted_(quoted) {}

  void read(std::uint64_t address) {
    read_node(address, std::nullopt);
    if (found_ != grid_.chunks.size()) {
      file_.fail(ErrorCode::Unsupported, fmt::format("tensor {} has {} of its {} chunks, expected all",
                                                     quoted_, found_, grid_.chunks.size()));
    }
  }

 private:
  void read_node(std::uint64_t address, std::optional<unsigned> expected_level) {
    ByteCursor node = file_.structure_from(address, 24, "a tree of chunks");
    const Bytes magic = node.take(4);
    const auto kind = node.number<std::uint8_t>();
    const unsigned level = node.number<std::uint8_t>();
    if (std::memcmp(magic.data(), "TREE", 4) != 0 || kind != 1 || level != expected_level.value_or(level)) {
      file_.fail(ErrorCode::Format,
                 fmt::format("tensor {} has no tree of chunks at byte {}", quoted_, address));
    }
    const auto children = node.number<std::uint16_t>();
    const std::uint64_t key = 8 + 8 * std::uint64_t{grid_.shape.size()};
    ByteCursor entries = file_.structure(address + 24, children * (key + 8), "a tree of chunks");
    for (unsigned i = 0; i < children; ++i) {
      ByteCursor fields(entries.take(key), "a chunk's key", file_.where());
      const auto child = entries.number<std::uint64_t>();
      level == 0 ? place(fields, child) : read_node(child, level - 1);
    }
  }

  void place(ByteCursor& key, std::uint64_t address) {
    const std::uint64_t size = key.number<std::uint32_t>();
    const auto skipped = key.number<std::uint32_t>();
    std::uint64_t number = 0;
    for (std::size_t axis = 0; axis < grid_.shape.size(); ++axis) {
      const auto begin = key.number<std::uint64_t>();
      if (begin % grid_.extent[axis] != 0 || begin >= grid_.shape[axis]) {
        file_.fail(ErrorCode::Format,
                   fmt::format("tensor {} has a chunk at {} of axis {}, which is no multiple "
                               "of {} below {}",
                               quoted_, begin, axis, grid_.extent[axis], grid_.shape[axis]));
      }
      number = number * grid_.count(axis) + begin / grid_.extent[axis];
    }
    Hdf5Chunk& chunk = grid_.chunks[static_cast<std::size_t>(number)];
    if (chunk.stored.size != 0)
      file_.fail(ErrorCode::Format, fmt::format("tensor {} has a chunk twice", quoted_));
    check_size(size, skipped);
    if (address > file_.bytes().size() || size > file_.bytes().size() - address) {
      file_.fail(ErrorCode::Format, fmt::format("tensor {} has a chunk of {} bytes at byte {} of {}", quoted_,
                                                size, address, file_.bytes().size()));
    }
    chunk = {{address, size}, skipped};
    ++found_;
  }

  void check_size(std::uint64_t size, std::uint32_t skipped) const {
    bool is_deflated = false;
    for (std::size_t i = 0; i < grid_.filters.size(); ++i) {
      is_deflated |= grid_.filters[i] == Hdf5Filter::deflate && (skipped >> i & 1) == 0;
    }
    const std::uint64_t unpacked = grid_.chunk_bytes();
    if (size == 0 || (is_deflated ? unpacked / bytes::largest_deflate_ratio > size : unpacked != size)) {
      file_.fail(ErrorCode::Format, fmt::format("tensor {} has a chunk of {} bytes that is stored in {}",
                                                quoted_, unpacked, size));
    }
  }

  Hdf5File& file_;
  Hdf5Grid& grid_;
  const std::string& quoted_;
  std::uint64_t found_ = 0;
};

/// Undoes HDF5's shuffle filter, which stores the first bytes of all elements, then the second ones, and so
/// on.
std::vector<std::byte> unshuffled(Bytes bytes, std::uint64_t width) {
  std::vector<std::byte> result(bytes.size());
  const std::size_t step = static_cast<std::size_t>(width);
  const std::size_t elements = bytes.size() / step;
  for (std::size_t byte = 0; byte < step; ++byte) {
    for (std::size_t i = 0; i < elements; ++i) result[i * step + byte] = bytes[byte * elements + i];
  }
  return result;
}

}  // namespace

std::vector<Hdf5Filter> read_hdf5_filters(Hdf5File& file, const Hdf5Message& message,
                                          const std::string& quoted) {
  ByteCursor fields(message.data, "a filter pipeline", file.where());
  const auto version = fields.number<std::uint8_t>();
  const auto count = fields.number<std::uint8_t>();
  if (version < 1 || version > 2 || count > 32) {
    file.fail(ErrorCode::Unsupported,
              fmt::format("tensor {} has {} filters of version {}, expected at most 32 of version 1 or 2",
                          quoted, count, version));
  }
  if (version == 1) fields.skip(6);
  std::vector<Hdf5Filter> filters;
  for (unsigned i = 0; i < count; ++i) {
    const auto filter = fields.number<std::uint16_t>();
    const unsigned name = version == 1 || filter >= 256 ? fields.number<std::uint16_t>() : 0;
    fields.skip(2);
    const unsigned values = fields.number<std::uint16_t>();
    fields.skip(name + (version == 1 ? (8 - name % 8) % 8 : 0));
    fields.skip(std::uint64_t{values} * 4 + (version == 1 && values % 2 != 0 ? 4 : 0));
    if (filter != static_cast<std::uint16_t>(Hdf5Filter::deflate) &&
        filter != static_cast<std::uint16_t>(Hdf5Filter::shuffle)) {
      file.fail(ErrorCode::Unsupported,
                fmt::format("tensor {} is packed by filter {}, expected deflate (1) or shuffle (2)", quoted,
                            filter));
    }
    filters.push_back(static_cast<Hdf5Filter>(filter));
  }
  return filters;
}

std::uint64_t Hdf5Grid::chunk_bytes() const {
  std::uint64_t product = 1;
  for (const std::uint64_t length : extent) product *= length;
  return product;
}

void read_hdf5_chunks(Hdf5File& file, std::uint64_t tree, Hdf5Grid& grid, const std::string& quoted) {
  Hdf5ChunkTree(file, grid, quoted).read(tree);
}

Hdf5Chunked::Hdf5Chunked(std::span<const std::byte> file, Hdf5Grid grid, std::shared_ptr<UnpackedCache> cache,
                         std::string where)
    : file_(file), grid_(std::move(grid)), cache_(std::move(cache)), where_(std::move(where)) {
  for (const std::uint64_t extent : grid_.shape) size_ *= extent;
}

UnpackedCache::Bytes Hdf5Chunked::unpacked(const Hdf5Chunk& chunk) const {
  if (UnpackedCache::Bytes kept = cache_->find(chunk.stored.begin)) return kept;
  const Bytes stored = file_.subspan(static_cast<std::size_t>(chunk.stored.begin),
                                     static_cast<std::size_t>(chunk.stored.size));
  std::vector<std::byte> bytes(stored.begin(), stored.end());
  for (std::size_t i = grid_.filters.size(); i-- > 0;) {
    if ((chunk.skipped >> i & 1) != 0) continue;
    if (grid_.filters[i] == Hdf5Filter::deflate) {
      std::vector<std::byte> inflated(static_cast<std::size_t>(grid_.chunk_bytes()));
      bytes::inflate_zlib(bytes, inflated, where_);
      bytes = std::move(inflated);
    } else {
      bytes = unshuffled(bytes, grid_.shape.back());
    }
  }
  auto kept = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  cache_->keep(chunk.stored.begin, kept);
  return kept;
}

void Hdf5Chunked::read(std::uint64_t offset, std::span<std::byte> out) const {
  NORMSCOPE_ASSERT(offset <= size_ && out.size() <= size_ - offset);
  if (out.empty()) return;
  // The chunks that overlap the range along the first axis.
  const std::uint64_t slice = size_ / grid_.shape[0];
  const std::uint64_t band = grid_.chunks.size() / grid_.count(0);
  const std::uint64_t first = offset / slice / grid_.extent[0];
  const std::uint64_t last = (offset + out.size() - 1) / slice / grid_.extent[0];
  for (std::uint64_t number = first * band; number < (last + 1) * band; ++number) {
    copy_chunk(number, offset, out);
  }
}

/// Copies the part of the range that a chunk contains, run by run along the last axis of elements.
void Hdf5Chunked::copy_chunk(std::uint64_t number, std::uint64_t offset, std::span<std::byte> out) const {
  const std::size_t axes = grid_.shape.size();
  std::vector<std::uint64_t> begin(axes);
  std::vector<std::uint64_t> length(axes);
  std::uint64_t rest = number;
  for (std::size_t axis = axes; axis-- > 0;) {
    begin[axis] = rest % grid_.count(axis) * grid_.extent[axis];
    rest /= grid_.count(axis);
    length[axis] = std::min(grid_.extent[axis], grid_.shape[axis] - begin[axis]);
  }
  const std::uint64_t width = grid_.shape.back();
  const std::size_t outer = axes - 2;  // axes in front of a run
  const std::uint64_t run = length[outer] * width;
  UnpackedCache::Bytes bytes;
  std::vector<std::uint64_t> at(outer, 0);
  while (true) {
    std::uint64_t to = 0;    // in the dataset
    std::uint64_t from = 0;  // in the chunk
    for (std::size_t axis = 0; axis < outer; ++axis) {
      to = to * grid_.shape[axis] + begin[axis] + at[axis];
      from = from * grid_.extent[axis] + at[axis];
    }
    to = (to * grid_.shape[outer] + begin[outer]) * width;
    from = from * grid_.extent[outer] * width;
    const std::uint64_t low = std::max(to, offset);
    const std::uint64_t high = std::min(to + run, offset + out.size());
    if (low < high) {
      if (!bytes) bytes = unpacked(grid_.chunks[static_cast<std::size_t>(number)]);
      std::memcpy(out.data() + (low - offset), bytes->data() + (from + low - to),
                  static_cast<std::size_t>(high - low));
    }
    std::size_t axis = outer;
    while (axis > 0 && ++at[axis - 1] == length[axis - 1]) at[--axis] = 0;
    if (axis == 0) return;
  }
}

void SwappedElements::read(std::uint64_t offset, std::span<std::byte> out) const {
  NORMSCOPE_ASSERT(offset % width_ == 0 && out.size() % width_ == 0);
  std::vector<std::byte> buffer;
  const Bytes from = stored_.part(offset, out.size()).fetch(buffer);
  for (std::size_t i = 0; i < out.size(); i += width_) {
    std::reverse_copy(from.begin() + static_cast<std::ptrdiff_t>(i),
                      from.begin() + static_cast<std::ptrdiff_t>(i + width_),
                      out.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace normscope::checkpoint
