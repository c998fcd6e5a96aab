#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

/// Where a checkpoint's bytes come from: memory, or ranges that are read when they are asked for.
namespace normscope::checkpoint {

/// A file's bytes. Several threads may read at a time.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// All bytes where they lie in memory, nothing where they must be read.
  [[nodiscard]] virtual std::optional<std::span<const std::byte>> memory() const { return std::nullopt; }
  /// Fills `out` with the bytes from `offset` on.
  /// Errors    Io
  /// Requires  offset + out.size() <= size()
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

using OpenSource = std::function<std::unique_ptr<Source>(const std::filesystem::path&)>;

/// The file mapped into memory.
/// Errors    Io
[[nodiscard]] std::unique_ptr<Source> map_file(const std::filesystem::path& path);

/// The file read range by range, for where it is larger than the address space. Small reads that stand near
/// each other, as a matrix's columns do, become few large ones.
/// Errors    Io
/// Cost      memory 32 MiB at most
[[nodiscard]] std::unique_ptr<Source> read_file(const std::filesystem::path& path);

/// Bytes that are held at a time where a file is not mapped: all that 32-bit addresses leave room for.
inline constexpr std::uint64_t largest_held =
    sizeof(void*) == 4 ? std::uint64_t{1} << 30 : std::uint64_t{1} << 46;

/// Consecutive bytes of a source, or of memory; a view of either.
class StoredBytes {
 public:
  StoredBytes() = default;
  StoredBytes(std::span<const std::byte> memory) : data_(memory.data()), size_(memory.size()) {}
  explicit StoredBytes(const Source& source);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Bytes [offset, offset + size).
  /// Requires  offset + size <= this->size()
  [[nodiscard]] StoredBytes part(std::uint64_t offset, std::uint64_t size) const;
  /// Where these begin within `whole`, which they are a part of.
  [[nodiscard]] std::uint64_t offset_in(const StoredBytes& whole) const;

  [[nodiscard]] bool in_memory() const { return source_ == nullptr; }
  /// The bytes in place.
  /// Requires  in_memory()
  [[nodiscard]] std::span<const std::byte> memory() const;
  /// The bytes in place, or else in `buffer`, which they are read into.
  /// Errors    Io; Unsupported beyond `largest_held`
  [[nodiscard]] std::span<const std::byte> fetch(std::vector<std::byte>& buffer) const;

 private:
  const Source* source_ = nullptr;  ///< null for bytes in memory
  union {
    const std::byte* data_ = nullptr;  ///< of bytes in memory
    std::uint64_t offset_;             ///< of others, in the source
  };
  std::uint64_t size_ = 0;
};

/// Whether both hold the same bytes. Reads up to the first difference, a piece at a time.
/// Errors    Io
[[nodiscard]] bool equal(const StoredBytes& a, const StoredBytes& b);

}  // namespace normscope::checkpoint
