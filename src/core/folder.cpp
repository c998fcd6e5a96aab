#include <normscope/core/file.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "descriptor.hpp"

namespace normscope {
namespace {

using std::filesystem::path;

void remove_folder_at(int parent, const char* name) noexcept {
  const int folder = ::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  std::array<dirent64, 16> entries;  // a buffer; an entry takes as many bytes as its name needs
  ssize_t size = 0;
  while (folder >= 0 && (size = ::getdents64(folder, entries.data(), sizeof entries)) > 0) {
    for (ssize_t at = 0; at < size;) {
      const auto* entry =
          reinterpret_cast<const dirent64*>(reinterpret_cast<const char*>(entries.data()) + at);
      at += entry->d_reclen;
      if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
      if (::unlinkat(folder, entry->d_name, 0) != 0) remove_folder_at(folder, entry->d_name);
    }
  }
  if (folder >= 0) ::close(folder);
  ::unlinkat(parent, name, AT_REMOVEDIR);
}

}  // namespace

FolderLock::FolderLock(const path& folder, bool is_new) {
  Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (opened.value() < 0) return;
  if (::flock(opened.value(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return;
    without_locks_ = {errno, std::generic_category()};
    if (!is_new) return;
  }
  struct stat locked {};
  struct stat named {};
  if (::fstat(opened.value(), &locked) == 0 && ::lstat(folder.c_str(), &named) == 0 &&
      locked.st_dev == named.st_dev && locked.st_ino == named.st_ino) {
    descriptor_ = opened.release();
  }
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), without_locks_(other.without_locks_) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(without_locks_, other.without_locks_);
  return *this;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void remove_folder(const path& folder) noexcept { remove_folder_at(AT_FDCWD, folder.c_str()); }

std::error_code sync_to_disk(const path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.value() >= 0 && ::fsync(file.value()) == 0) return {};
  return {errno, std::generic_category()};
}

bool is_own(const path& path) {
  struct stat named {};
  return ::lstat(path.c_str(), &named) == 0 && named.st_uid == ::geteuid();
}

}  // namespace normscope
