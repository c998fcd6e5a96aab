#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <normscope/core/error.hpp>

namespace normscope::files {

/// Throws the error "<where>: <what>".
[[noreturn]] inline void fail(ErrorCode code, const std::string& where, const std::string& what) {
  throw Error(code, where + ": " + what);
}

/// A name from a file, in quotes and safe for one line of a message: control characters as \xNN, cut after
/// 100 bytes.
[[nodiscard]] std::string quote(std::string_view name);

// Access to the bytes of a checkpoint, in memory or read in ranges on request.

/// The bytes of a file. Thread-safe for reading.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// All bytes if they are in memory, otherwise empty.
  [[nodiscard]] virtual std::optional<std::span<const std::byte>> memory() const { return std::nullopt; }
  /// Fills `out` with the bytes from `offset` on.
  ///
  /// Errors    Io
  ///
  /// Requires  offset + out.size() <= size()
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

using OpenSource = std::function<std::unique_ptr<Source>(const std::filesystem::path&)>;

/// The file mapped into memory.
///
/// Errors    Io
[[nodiscard]] std::unique_ptr<Source> map_file(const std::filesystem::path& path);

/// The file read range by range, for files larger than the address space. Small reads at nearby offsets, such
/// as those of a matrix's columns, are combined into few large ones.
///
/// Errors    Io
///
/// Cost      memory 16 MiB at most, for all such files together
[[nodiscard]] std::unique_ptr<Source> read_file(const std::filesystem::path& path);

/// Number of bytes held at a time if a file is not mapped, chosen for 32-bit address spaces.
inline constexpr std::uint64_t largest_held =
    sizeof(void*) == 4 ? std::uint64_t{1} << 30 : std::uint64_t{1} << 46;

/// Consecutive bytes of a source or of memory; a view.
class StoredBytes {
 public:
  StoredBytes() = default;
  StoredBytes(std::span<const std::byte> memory) : data_(memory.data()), size_(memory.size()) {}
  explicit StoredBytes(const Source& source);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Bytes [offset, offset + size).
  ///
  /// Requires  offset + size <= this->size()
  [[nodiscard]] StoredBytes part(std::uint64_t offset, std::uint64_t size) const;
  /// The offset of these bytes within `whole`, of which they are a part.
  [[nodiscard]] std::uint64_t offset_in(const StoredBytes& whole) const;

  [[nodiscard]] bool in_memory() const { return source_ == nullptr; }
  /// The bytes in place.
  ///
  /// Requires  in_memory()
  [[nodiscard]] std::span<const std::byte> memory() const;
  /// The bytes in place if they are in memory, otherwise read into `buffer`.
  ///
  /// Errors    Io; Unsupported beyond `largest_held`
  [[nodiscard]] std::span<const std::byte> fetch(std::vector<std::byte>& buffer) const;
  /// Copies the bytes.
  ///
  /// Errors    Io
  ///
  /// Requires  out.size() == size()
  void copy_to(std::span<std::byte> out) const;

 private:
  const Source* source_ = nullptr;  ///< null for bytes in memory
  union {
    const std::byte* data_ = nullptr;  ///< for bytes in memory
    std::uint64_t offset_;             ///< for others: offset in the source
  };
  std::uint64_t size_ = 0;
};

/// Whether both have the same bytes. Reads piece by piece, on all processors, up to a difference.
///
/// Errors    Io
[[nodiscard]] bool equal(const StoredBytes& a, const StoredBytes& b);

}  // namespace normscope::files
