#include <normscope/files/source.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/parallel.hpp>

namespace normscope::files {
namespace {

constexpr std::uint64_t piece = std::uint64_t{1} << 20;

class MappedSource : public Source {
 public:
  explicit MappedSource(const std::filesystem::path& path) : file_(path) {}

  [[nodiscard]] std::uint64_t size() const override { return file_.bytes().size(); }
  [[nodiscard]] std::optional<std::span<const std::byte>> memory() const override { return file_.bytes(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::span<const std::byte> from =
        file_.bytes().subspan(static_cast<std::size_t>(offset), out.size());
    std::copy(from.begin(), from.end(), out.begin());
  }

 private:
  MappedFile file_;
};

/// A read of this size gains less from a block that is held than its copy takes, and goes past the cache.
constexpr std::uint64_t block_size = std::uint64_t{1} << 18;
constexpr std::size_t most_blocks = 64;

/// The most recently used blocks of all files that are open, so that a model of many files takes no more
/// memory than one file.
class BlockCache {
 public:
  /// Copies the bytes of a block from `from` on, reading the block where it is not held; returns their
  /// number.
  std::size_t copy(const RangedFile& file, std::uint64_t number, std::size_t from, std::span<std::byte> out) {
    const std::lock_guard lock(mutex_);
    const std::vector<std::byte>& held = block(file, number);
    const std::size_t count = std::min(out.size(), held.size() - from);
    std::copy_n(held.begin() + static_cast<std::ptrdiff_t>(from), count, out.begin());
    return count;
  }

  void forget(const RangedFile& file) {
    const std::lock_guard lock(mutex_);
    const auto begin = places_.lower_bound({&file, 0});
    const auto end = places_.upper_bound({&file, ~std::uint64_t{0}});
    for (auto place = begin; place != end; ++place) blocks_.erase(place->second);
    places_.erase(begin, end);
  }

 private:
  using Key = std::pair<const RangedFile*, std::uint64_t>;
  struct Block {
    Key key;
    std::vector<std::byte> bytes;
  };

  const std::vector<std::byte>& block(const RangedFile& file, std::uint64_t number) {
    const Key key{&file, number};
    if (const auto known = places_.find(key); known != places_.end()) {
      blocks_.splice(blocks_.begin(), blocks_, known->second);
      return blocks_.front().bytes;
    }
    std::vector<std::byte> bytes;
    if (blocks_.size() == most_blocks) {
      bytes = std::move(blocks_.back().bytes);
      places_.erase(blocks_.back().key);
      blocks_.pop_back();
    }
    const std::uint64_t begin = number * block_size;
    bytes.resize(static_cast<std::size_t>(std::min(block_size, file.size() - begin)));
    file.read(begin, bytes);
    blocks_.push_front({key, std::move(bytes)});
    places_[key] = blocks_.begin();
    return blocks_.front().bytes;
  }

  std::mutex mutex_;
  std::list<Block> blocks_;  ///< most recently used first
  std::map<Key, std::list<Block>::iterator> places_;
};

BlockCache& block_cache() {
  static BlockCache blocks;
  return blocks;
}

/// A file of which large ranges are read directly, and others through the cache.
class FileSource : public Source {
 public:
  explicit FileSource(const std::filesystem::path& path) : file_(path) {}
  ~FileSource() override { block_cache().forget(file_); }

  [[nodiscard]] std::uint64_t size() const override { return file_.size(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    NORMSCOPE_ASSERT(offset <= size() && out.size() <= size() - offset);
    // Reads move the file's position.
    const std::lock_guard lock(mutex_);
    if (out.size() >= block_size) {
      file_.read(offset, out);
      return;
    }
    while (!out.empty()) {
      const std::uint64_t number = offset / block_size;
      const std::size_t count =
          block_cache().copy(file_, number, static_cast<std::size_t>(offset - number * block_size), out);
      offset += count;
      out = out.subspan(count);
    }
  }

 private:
  RangedFile file_;
  mutable std::mutex mutex_;
};

}  // namespace

std::unique_ptr<Source> map_file(const std::filesystem::path& path) {
  return std::make_unique<MappedSource>(path);
}

StoredBytes::StoredBytes(const Source& source) : size_(source.size()) {
  if (const auto memory = source.memory()) {
    data_ = memory->data();
  } else {
    source_ = &source;
    offset_ = 0;
  }
}

StoredBytes StoredBytes::part(std::uint64_t offset, std::uint64_t size) const {
  NORMSCOPE_ASSERT(offset <= size_ && size <= size_ - offset);
  StoredBytes result = *this;
  result.size_ = size;
  if (in_memory()) {
    result.data_ += static_cast<std::size_t>(offset);
  } else {
    result.offset_ += offset;
  }
  return result;
}

std::uint64_t StoredBytes::offset_in(const StoredBytes& whole) const {
  NORMSCOPE_ASSERT(source_ == whole.source_);
  return in_memory() ? static_cast<std::uint64_t>(data_ - whole.data_) : offset_ - whole.offset_;
}

std::span<const std::byte> StoredBytes::memory() const {
  NORMSCOPE_ASSERT(in_memory());
  return {data_, static_cast<std::size_t>(size_)};
}

std::span<const std::byte> StoredBytes::fetch(std::vector<std::byte>& buffer) const {
  if (in_memory()) return memory();
  if (size_ > largest_held) {
    throw Error(ErrorCode::Unsupported,
                fmt::format("source: {} bytes requested at once, expected at most {}", size_, largest_held));
  }
  buffer.resize(static_cast<std::size_t>(size_));
  source_->read(offset_, buffer);
  return buffer;
}

void StoredBytes::copy_to(std::span<std::byte> out) const {
  NORMSCOPE_ASSERT(out.size() == size_);
  if (in_memory()) {
    std::copy_n(data_, out.size(), out.begin());
  } else {
    source_->read(offset_, out);
  }
}

bool equal(const StoredBytes& a, const StoredBytes& b) {
  if (a.size() != b.size()) return false;
  std::atomic<bool> differs = false;
  const auto pieces = static_cast<std::size_t>((a.size() + piece - 1) / piece);
  parallel_for(pieces, 8, 0, [&](std::size_t begin, std::size_t end) {
    std::vector<std::byte> left;
    std::vector<std::byte> right;
    for (std::size_t at = begin; at < end && !differs; ++at) {
      const std::uint64_t first = at * piece;
      const std::uint64_t size = std::min(piece, a.size() - first);
      const std::span<const std::byte> x = a.part(first, size).fetch(left);
      const std::span<const std::byte> y = b.part(first, size).fetch(right);
      if (std::memcmp(x.data(), y.data(), x.size()) != 0) differs = true;
    }
  });
  return !differs;
}

std::unique_ptr<Source> read_file(const std::filesystem::path& path) {
  return std::make_unique<FileSource>(path);
}

}  // namespace normscope::files
