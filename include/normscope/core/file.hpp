#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

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

/// The absolute path without dots; the path itself, without dots, where the working directory is deleted.
[[nodiscard]] std::filesystem::path spelled_out(const std::filesystem::path& path);

/// Paths of the entries of a folder, sorted. `error` tells why it cannot be read, or not to its end; the
/// result then has what could be read. Throws bad_alloc without memory, where the iterators of libstdc++ 12
/// end the program.
[[nodiscard]] std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder,
                                                             std::error_code& error);

/// A file that appears under its name complete or not at all: bytes go to a temporary file in the same
/// folder, which `commit` syncs and renames. Without `commit`, an existing file stays as it was. Where the
/// file system has files without a name, the temporary file is one until `commit`, and nothing is left of a
/// process that is killed while it writes. Elsewhere such a process leaves `.normscope-<hex>`. A link is
/// followed where the kernel follows it.
///
/// Errors    Io, naming the file
class AtomicFile {
 public:
  /// `named` is what file systems without unnamed files get in any case.
  enum class Temporary { unnamed, named };

  explicit AtomicFile(std::filesystem::path path, Temporary kind = Temporary::unnamed);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// What is written from now on goes to the disk without a copy in the page cache, where the file system can
  /// do that. `commit` waits for the disk in any case, and a large file takes the cache away from others.
  ///
  /// Memory    1 MiB for a piece; larger spans are not copied if they lie in pages of 4096 as in the file
  void bypass_cache();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  /// Nothing can be written afterwards. While an `AtomicGroup` of this thread exists, the file only appears
  /// with that of the others.
  void commit();

 private:
  friend class AtomicGroup;

  void create_unnamed(const std::filesystem::path& folder);
  void create_named();
  void name_it();
  void put(std::span<const std::byte> bytes);
  void put_last_piece();
  void sync();
  void publish();
  void discard();

  struct Free {
    void operator()(std::byte* piece) const;
  };

  std::filesystem::path path_;
  std::filesystem::path temporary_{};
  int descriptor_ = -1;
  std::unique_ptr<std::byte, Free> piece_{};  ///< aligned; only of a file that bypasses the cache
  std::size_t filled_ = 0;                    ///< bytes of the piece
  bool replaces_ = false;                     ///< false for a device or a pipe, which is written to directly
};

/// Files that appear together, such as the two outputs of a command: every `AtomicFile` that commits on this
/// thread while the group exists is synced, and all are renamed by the group's `commit`. Without it none
/// appears. Groups do not nest.
///
/// Errors    Io, naming the file; if a rename fails, the files before it have appeared
class AtomicGroup {
 public:
  AtomicGroup();
  AtomicGroup(const AtomicGroup&) = delete;
  AtomicGroup& operator=(const AtomicGroup&) = delete;
  ~AtomicGroup();

  void commit();

 private:
  friend class AtomicFile;

  std::vector<AtomicFile> files_{};
};

/// A lock on a folder that one process at a time holds; the system releases that of a process that ends.
class FolderLock {
 public:
  FolderLock() = default;
  /// Holds nothing if there is no such folder, it is a link, another lock is on it, or it was removed
  /// meanwhile; nor where the file system has no locks, unless this process has just made the folder
  /// (`is_new`).
  explicit FolderLock(const std::filesystem::path& folder, bool is_new = false);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

  [[nodiscard]] bool is_held() const { return descriptor_ >= 0; }
  /// Why the file system gives no lock at all; no error if it does.
  [[nodiscard]] std::error_code without_locks() const { return without_locks_; }

 private:
  int descriptor_ = -1;
  std::error_code without_locks_;
};

/// Removes a folder and what is in it, as far as it can; follows no links. Allocates nothing, so that it
/// works when there is no memory left.
void remove_folder(const std::filesystem::path& folder) noexcept;

/// Makes what was written to a file last through a loss of power; of a folder, the names in it, which some
/// file systems cannot sync.
[[nodiscard]] std::error_code sync_to_disk(const std::filesystem::path& path);

/// Whether the file itself, not what it links to, belongs to the user of this process.
[[nodiscard]] bool is_own(const std::filesystem::path& path);

// Whether paths lead to the same place, through links and mounts, and where the files do not exist yet.

[[nodiscard]] bool is_same_place(const std::filesystem::path& a, const std::filesystem::path& b);

/// Whether `path` is `folder` or lies below it.
[[nodiscard]] bool lies_within(const std::filesystem::path& path, const std::filesystem::path& folder);

/// Files whose bytes a result is of. Whether they are still those that were opened is known by the file
/// system's number of each, its size and the time of its last change.
class UnchangedFiles {
 public:
  /// Call before a file is opened. A path that cannot be examined is left to whoever opens it.
  void note(const std::filesystem::path& file);
  /// Call before the result is written.
  ///
  /// Errors    Io, naming the file, if one was changed, replaced or removed since it was noted
  void expect() const;
  void clear() { files_.clear(); }

 private:
  struct Noted {
    std::filesystem::path file;
    std::uint64_t device = 0;
    std::uint64_t number = 0;
    std::uint64_t size = 0;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
  };
  static bool examine(Noted& noted);

  std::vector<Noted> files_{};
};

/// The inputs of a program with one task, such as the command; of a library there are none. An output that an
/// `AtomicFile` commits does not appear if one of them was changed. Not thread-safe.
[[nodiscard]] UnchangedFiles& inputs_of_process();

/// The files that this thread maps while it exists, for the calls of a library: a call that read them ends
/// with `expect_unchanged`, also where it failed. Meanwhile bytes of a mapped file that another process has
/// cut off read as zeros.
class MappedFilesOfCall {
 public:
  MappedFilesOfCall();
  MappedFilesOfCall(const MappedFilesOfCall&) = delete;
  MappedFilesOfCall& operator=(const MappedFilesOfCall&) = delete;
  ~MappedFilesOfCall();

  /// Errors    Io, naming the file, if the bytes of one were changed since it was mapped
  void expect_unchanged() const;

 private:
  friend class MappedFile;
  struct Noted;

  std::vector<Noted> files_;
  MappedFilesOfCall* outer_;
};

/// Handles reads of a `MappedFile` where another process has made the file shorter, instead of the end of the
/// process by SIGBUS: `lost` gets the `printable` name, cut after 500 bytes, in the handler of the signal; if
/// there is none, or it returns, what is missing reads as zeros. Other faults go to the handler that was
/// there before. The first call installs the handler, and later ones do nothing.
void handle_shortened_files(void (*lost)(std::string_view file) = nullptr);

}  // namespace normscope
