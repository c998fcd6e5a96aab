#pragma once

#include <filesystem>
#include <system_error>

namespace normscope {

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

}  // namespace normscope
