#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace normscope {

/// A regular file's bytes, mapped read-only, or read where its file system maps nothing; empty files map to
/// an empty span.
///
/// Errors    Io, naming the file, when it is missing, unreadable or not a regular file
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::unique_ptr<std::byte[]> read_{};  ///< the bytes, if they are not mapped
};

/// A regular file open for reading at any offset; never mapped, so it may be larger than memory and the
/// address space. Not thread-safe.
///
/// Errors    Io, naming the file, when it is missing, unreadable or not a regular file
class RangedFile {
 public:
  explicit RangedFile(std::filesystem::path path);
  RangedFile(const RangedFile&) = delete;
  RangedFile& operator=(const RangedFile&) = delete;
  ~RangedFile();

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Fills `out` with the bytes from `offset` on.
  ///
  /// Errors    Io, naming the file, also where it ends before that
  void read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// A file that appears under its name complete or not at all: bytes go to a temporary file in the same
/// folder, and `commit` syncs and renames it. Without `commit`, the destructor removes the temporary file and
/// leaves an existing file unchanged. A process that is killed while it writes leaves its temporary file,
/// `.normscope-<boot>-<hex>`, which the same user's next `AtomicFile` in that folder removes: a process holds
/// a lock on its temporary file, so a file without a lock belongs to a dead process (test:
/// AtomicFile.RemovesWhatADeadProcessLeft). Files from before a restart or of other machines are kept; remove
/// them when no process writes there.
///
/// Errors    Io, naming the file
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

}  // namespace normscope
