#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace normscope::files {

/// Reads a file with one array front to back, gzipped or not.
///
/// Errors    Format; Unsupported where more than `most_unpacked` bytes are read; messages begin with `where`
class PackedSource {
 public:
  PackedSource(std::span<const std::byte> bytes, std::string where);
  PackedSource(const PackedSource&) = delete;
  PackedSource& operator=(const PackedSource&) = delete;
  ~PackedSource();

  /// Throws if the file cannot contain that many bytes, or if they are more than are unpacked from a file of
  /// its size.
  void require(std::uint64_t size) const;
  /// Fills `out` with the next bytes.
  void read(std::span<std::byte> out);
  /// Reads up to `out.size()` of the next bytes and returns their number.
  std::size_t take(std::span<std::byte> out);
  /// Throws unless everything has been read.
  void finish();

 private:
  std::span<const std::byte> bytes_;
  std::string where_;
  std::size_t at_ = 0;  ///< bytes taken
  struct Inflater;
  std::unique_ptr<Inflater> inflater_;  ///< null for an uncompressed file
};

}  // namespace normscope::files
