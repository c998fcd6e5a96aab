#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace normscope::checkpoint {

/// The most recently unpacked pieces of one file, by their position in the file: at most 32 MiB together, or
/// one larger piece. Thread-safe.
class UnpackedCache {
 public:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;

  /// The bytes at that place, or null.
  [[nodiscard]] Bytes find(std::uint64_t place) const {
    const std::lock_guard lock(mutex_);
    const auto found = pieces_.find(place);
    return found == pieces_.end() ? nullptr : found->second;
  }

  void keep(std::uint64_t place, const Bytes& bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t added = bytes->size();
    if (size_ + added > most_kept) {
      pieces_.clear();
      size_ = 0;
    }
    if (pieces_.try_emplace(place, bytes).second) size_ += added;
  }

 private:
  static constexpr std::size_t most_kept = std::size_t{32} << 20;

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Bytes> pieces_;
  std::size_t size_ = 0;
};

}  // namespace normscope::checkpoint
