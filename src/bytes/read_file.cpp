#include <algorithm>
#include <cstdint>
#include <list>
#include <mutex>
#include <unordered_map>

#include <normscope/bytes/source.hpp>
#include <normscope/core/assert.hpp>
#include <normscope/core/file.hpp>

namespace normscope::bytes {
namespace {

constexpr std::uint64_t block_size = std::uint64_t{1} << 20;
constexpr std::size_t most_blocks = 32;

/// A file read in blocks, with the most recently used ones cached.
class FileSource : public Source {
 public:
  explicit FileSource(const std::filesystem::path& path) : file_(path) {}

  [[nodiscard]] std::uint64_t size() const override { return file_.size(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    NORMSCOPE_ASSERT(offset <= size() && out.size() <= size() - offset);
    const std::lock_guard lock(mutex_);
    while (!out.empty()) {
      const std::uint64_t number = offset / block_size;
      const std::uint64_t begin = number * block_size;
      if (offset == begin && out.size() >= block_size) {
        // Whole blocks are read once, directly into their destination.
        const std::size_t direct = out.size() - out.size() % static_cast<std::size_t>(block_size);
        file_.read(offset, out.first(direct));
        offset += direct;
        out = out.subspan(direct);
        continue;
      }
      const std::vector<std::byte>& held = block(number);
      const auto from = static_cast<std::size_t>(offset - begin);
      const std::size_t count = std::min(out.size(), held.size() - from);
      std::copy_n(held.begin() + static_cast<std::ptrdiff_t>(from), count, out.begin());
      offset += count;
      out = out.subspan(count);
    }
  }

 private:
  struct Block {
    std::uint64_t number;
    std::vector<std::byte> bytes;
  };

  const std::vector<std::byte>& block(std::uint64_t number) const {
    if (const auto known = places_.find(number); known != places_.end()) {
      blocks_.splice(blocks_.begin(), blocks_, known->second);
      return blocks_.front().bytes;
    }
    const std::uint64_t begin = number * block_size;
    std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(block_size, size() - begin)));
    file_.read(begin, bytes);
    if (blocks_.size() == most_blocks) {
      places_.erase(blocks_.back().number);
      blocks_.pop_back();
    }
    blocks_.push_front({number, std::move(bytes)});
    places_[number] = blocks_.begin();
    return blocks_.front().bytes;
  }

  RangedFile file_;
  mutable std::mutex mutex_;
  mutable std::list<Block> blocks_;  ///< most recently used first
  mutable std::unordered_map<std::uint64_t, std::list<Block>::iterator> places_;
};

}  // namespace

std::unique_ptr<Source> read_file(const std::filesystem::path& path) {
  return std::make_unique<FileSource>(path);
}

}  // namespace normscope::bytes
