#include <normscope/core/file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/error.hpp>

#include "descriptor.hpp"

namespace normscope {
namespace {

using std::filesystem::path;

path folder_of(const path& file) { return file.has_parent_path() ? file.parent_path() : path("."); }

/// `file` with the symbolic links of its last component resolved, even if their target does not exist. The
/// kernel has followed them before, where its rules for links in shared folders let it.
path follow_links(path file) {
  struct stat link {};
  for (int hops = 0; ::lstat(file.c_str(), &link) == 0 && S_ISLNK(link.st_mode); ++hops) {
    if (hops == 40) fail(file, "cannot be written: too many symbolic links");
    std::error_code error;
    const path target = std::filesystem::read_symlink(file, error);
    if (error) fail(file, "cannot be followed: " + error.message());
    file = file.parent_path() / target;  // an absolute target replaces the left side
  }
  return file;
}

/// Pieces of this size and more begin to move to the disk once they are written.
constexpr std::size_t large_piece = std::size_t{1} << 20;

/// Lets the kernel begin to write the last `size` bytes, so that `commit` waits for the rest alone.
void send_to_disk([[maybe_unused]] int descriptor, [[maybe_unused]] std::size_t size) {
#if defined(__linux__) && defined(SYNC_FILE_RANGE_WRITE)
  const off_t end = ::lseek(descriptor, 0, SEEK_CUR);
  const auto count = static_cast<off_t>(size);
  ::sync_file_range(descriptor, end - count, count, SYNC_FILE_RANGE_WRITE);
#endif
}

/// Pieces that bypass the page cache, and what their memory and their places in the file are multiples of.
constexpr std::size_t direct_piece = std::size_t{1} << 20;
constexpr std::size_t direct_alignment = 4096;

/// Switches the page cache off or on for what is written next; whether that changed something.
bool set_direct([[maybe_unused]] int descriptor, [[maybe_unused]] bool direct) {
#if defined(__linux__) && defined(O_DIRECT)
  const int flags = ::fcntl(descriptor, F_GETFL);
  return flags >= 0 && ((flags & O_DIRECT) != 0) != direct &&
         ::fcntl(descriptor, F_SETFL, flags ^ O_DIRECT) == 0;
#else
  return false;
#endif
}

/// How many bytes a piece that has `filled` takes; 0 if they can be written from where they are.
std::size_t bytes_to_collect(std::span<const std::byte> bytes, std::size_t filled) {
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::size_t before = (direct_alignment - filled % direct_alignment) % direct_alignment;
  const bool agrees = address % direct_alignment == filled % direct_alignment;
  if (agrees && bytes.size() >= before + direct_piece) return before;
  return std::min(bytes.size(), direct_piece - filled);
}

std::uint64_t random_bits(const path& file) {
  std::uint64_t value = 0;
  if (::getentropy(&value, sizeof value) != 0) {
    fail_errno(file, "no random number for the name of the temporary file");
  }
  return value;
}

/// New, because 64 bits of it are random.
path temporary_name(const path& file) {
  return folder_of(file) / fmt::format(".normscope-{:016x}", random_bits(file));
}

/// The name under which the kernel shows an open file, by which it can be given one in a folder.
std::string open_name(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

thread_local AtomicGroup* current_group = nullptr;

}  // namespace

AtomicFile::AtomicFile(path file, Temporary kind) : path_(std::move(file)) {
  if (path_.empty()) fail(path_, "has no name, expected a file to write");
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail_errno(path_, "cannot be written");
  if (exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    // A device or a pipe can only be written to, not replaced; links to one (/dev/stdout) have no target
    // path.
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor_ < 0) fail_errno(path_, "cannot be opened for writing");
    return;
  }
  replaces_ = true;
  path_ = follow_links(std::move(path_));
  if (exists) {
    if (S_ISDIR(status.st_mode)) fail(path_, "is a folder, expected a file to write");
    if (::faccessat(AT_FDCWD, path_.c_str(), W_OK, AT_EACCESS) != 0) fail_errno(path_, "cannot be replaced");
  }
  if (kind == Temporary::unnamed) create_unnamed(folder_of(path_));
  if (descriptor_ < 0) create_named();
  if (exists && ::fchmod(descriptor_, status.st_mode & 0777) != 0) {
    const int error = errno;
    discard();
    errno = error;
    fail_errno(path_, "its permissions cannot be kept");
  }
}

void AtomicFile::create_unnamed([[maybe_unused]] const path& folder) {
#if defined(__linux__) && defined(O_TMPFILE)
  Descriptor created(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  if (created.value() < 0 || ::access(open_name(created.value()).c_str(), F_OK) != 0) return;
  descriptor_ = created.release();
#endif
}

void AtomicFile::create_named() {
  temporary_ = temporary_name(path_);
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ >= 0) return;
  temporary_.clear();
  fail_errno(path_, "cannot be written");
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      piece_(std::move(other.piece_)),
      filled_(other.filled_),
      replaces_(other.replaces_) {
  other.temporary_.clear();
}

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::discard() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AtomicFile::Free::operator()(std::byte* piece) const {
  ::operator delete (piece, std::align_val_t{direct_alignment});
}

void AtomicFile::bypass_cache() {
  NORMSCOPE_ASSERT(descriptor_ >= 0);
  // Pieces begin at multiples of their size only if the file does.
  if (piece_ || !replaces_ || ::lseek(descriptor_, 0, SEEK_CUR) != 0 || !set_direct(descriptor_, true))
    return;
  piece_.reset(static_cast<std::byte*>(::operator new (direct_piece, std::align_val_t{direct_alignment})));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  NORMSCOPE_ASSERT(descriptor_ >= 0);
  if (!piece_) {
    put(bytes);
    if (replaces_ && bytes.size() >= large_piece) send_to_disk(descriptor_, bytes.size());
    return;
  }
  while (!bytes.empty()) {
    const std::size_t taken = bytes_to_collect(bytes, filled_);
    if (taken == 0) {
      put({piece_.get(), std::exchange(filled_, 0)});
      const std::size_t size = bytes.size() / direct_alignment * direct_alignment;
      put(bytes.first(size));
      bytes = bytes.subspan(size);
      continue;
    }
    std::memcpy(piece_.get() + filled_, bytes.data(), taken);
    filled_ += taken;
    bytes = bytes.subspan(taken);
    if (filled_ == direct_piece) {
      put({piece_.get(), direct_piece});
      filled_ = 0;
    }
  }
}

void AtomicFile::put(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      // Some file systems let the cache be switched off and then refuse to write without it.
      if (errno == EINVAL && piece_ && set_direct(descriptor_, false)) continue;
      fail_errno(path_, "cannot be written");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

/// The end of a file is no multiple of what can bypass the cache.
void AtomicFile::put_last_piece() {
  if (!piece_) return;
  set_direct(descriptor_, false);
  put({piece_.get(), filled_});
  piece_.reset();
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void AtomicFile::commit() {
  NORMSCOPE_ASSERT(descriptor_ >= 0);
  put_last_piece();
  if (!replaces_) {
    if (::close(std::exchange(descriptor_, -1)) != 0) fail_errno(path_, "cannot be closed");
    return;
  }
  sync();
  if (current_group != nullptr) {
    current_group->files_.push_back(std::move(*this));
  } else {
    inputs_of_process().expect();
    publish();
  }
}

void AtomicFile::sync() {
  if (::fsync(descriptor_) != 0) fail_errno(path_, "cannot be synced");
}

void AtomicFile::name_it() {
  const std::string open = open_name(descriptor_);
  // Known before it exists, so that the destructor removes it whatever fails.
  temporary_ = temporary_name(path_);
  if (::linkat(AT_FDCWD, open.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
  temporary_.clear();
  fail_errno(path_, "cannot be given a name");
}

void AtomicFile::publish() {
  if (temporary_.empty()) name_it();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_errno(path_, "cannot be renamed into place");
  temporary_.clear();
  ::close(std::exchange(descriptor_, -1));
  // The file is complete under its name already; some file systems cannot sync a folder.
  const Descriptor folder(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.value() >= 0) ::fsync(folder.value());
}

AtomicGroup::AtomicGroup() {
  NORMSCOPE_ASSERT(current_group == nullptr);
  current_group = this;
}

AtomicGroup::~AtomicGroup() { current_group = nullptr; }

void AtomicGroup::commit() {
  inputs_of_process().expect();
  inputs_of_process().clear();  // an output may be one of them
  for (AtomicFile& file : files_) {
    if (file.temporary_.empty()) file.name_it();
  }
  for (AtomicFile& file : files_) file.publish();
  files_.clear();
}

}  // namespace normscope
