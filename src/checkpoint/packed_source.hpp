#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace normscope::checkpoint {

/// Reads a file of one array front to back, whether or not it is gzip.
/// Errors    Format; messages begin with `where`
class PackedSource {
 public:
  PackedSource(std::span<const std::byte> bytes, std::string where);
  PackedSource(const PackedSource&) = delete;
  PackedSource& operator=(const PackedSource&) = delete;
  ~PackedSource();

  /// Whether `size` is more bytes than the file can hold.
  [[nodiscard]] bool exceeds(std::uint64_t size) const;
  /// Fills `out` with the bytes that come next.
  void read(std::span<std::byte> out);
  /// The next bytes, as many as there are up to `out.size()`.
  std::size_t take(std::span<std::byte> out);
  /// Throws unless everything has been read.
  void finish();

 private:
  std::span<const std::byte> bytes_;
  std::string where_;
  std::size_t at_ = 0;
  struct Inflater;
  std::unique_ptr<Inflater> inflater_;  ///< null for a file that is not packed
};

}  // namespace normscope::checkpoint
