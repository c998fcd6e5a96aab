#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <utility>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/files/source.hpp>

namespace normscope::files {
namespace {

constexpr std::uint64_t block_size = std::uint64_t{1} << 20;
constexpr std::size_t most_blocks = 32;

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

/// A file of which whole blocks are read directly, and others through the cache.
class FileSource : public Source {
 public:
  explicit FileSource(const std::filesystem::path& path) : file_(path) {}
  ~FileSource() override { block_cache().forget(file_); }

  [[nodiscard]] std::uint64_t size() const override { return file_.size(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    NORMSCOPE_ASSERT(offset <= size() && out.size() <= size() - offset);
    while (!out.empty()) {
      const std::uint64_t number = offset / block_size;
      const std::uint64_t begin = number * block_size;
      // Reads move the file's position.
      const std::lock_guard lock(mutex_);
      std::size_t count = 0;
      if (offset == begin && out.size() >= block_size) {
        count = out.size() - out.size() % static_cast<std::size_t>(block_size);
        file_.read(offset, out.first(count));
      } else {
        count = block_cache().copy(file_, number, static_cast<std::size_t>(offset - begin), out);
      }
      offset += count;
      out = out.subspan(count);
    }
  }

 private:
  RangedFile file_;
  mutable std::mutex mutex_;
};

}  // namespace

std::unique_ptr<Source> read_file(const std::filesystem::path& path) {
  return std::make_unique<FileSource>(path);
}

}  // namespace normscope::files
