#include <normscope/core/file.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/assert.hpp>
#include <normscope/core/error.hpp>

namespace normscope {
namespace {

using std::filesystem::path;

[[noreturn]] void fail(const path& file, std::string_view what) {
  throw Error(ErrorCode::Io, fmt::format("file: {}: {}", file.string(), what));
}

[[noreturn]] void fail_errno(const path& file, std::string_view what) {
  fail(file, fmt::format("{}: {}", what, std::strerror(errno)));
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  [[nodiscard]] int value() const { return value_; }

 private:
  int value_;
};

/// `file` with the symbolic links of its last component followed, whether or not they lead to a file.
path follow_links(path file) {
  std::error_code ignored;
  for (int hops = 0; std::filesystem::is_symlink(file, ignored); ++hops) {
    if (hops == 40) fail(file, "too many symbolic links");
    std::error_code error;
    const path target = std::filesystem::read_symlink(file, error);
    if (error) fail(file, "cannot be followed: " + error.message());
    file = file.parent_path() / target;  // an absolute target replaces the left side
  }
  return file;
}

path folder_of(const path& file) { return file.has_parent_path() ? file.parent_path() : path("."); }

std::uint64_t random_bits(const path& file) {
  std::uint64_t value = 0;
  if (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    fail_errno(file, "no random name for the temporary file");
  }
  return value;
}

}  // namespace

MappedFile::MappedFile(const path& file) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const Descriptor descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (descriptor.value() < 0) fail_errno(file, "cannot be opened");
  struct stat status {};
  if (::fstat(descriptor.value(), &status) != 0) fail_errno(file, "cannot be examined");
  if (S_ISDIR(status.st_mode)) fail(file, "is a folder, expected a regular file");
  if (!S_ISREG(status.st_mode)) fail(file, "is not a regular file");
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;
  void* mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor.value(), 0);
  if (mapping == MAP_FAILED) fail_errno(file, "cannot be mapped");
  data_ = static_cast<const std::byte*>(mapping);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

AtomicFile::AtomicFile(path file) : path_(std::move(file)) {
  if (path_.empty()) fail(path_, "has no name, expected a file to write");
  struct stat status {};
  std::optional<mode_t> mode;
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    // A device or a pipe cannot be replaced, only written to; the links to one (/dev/stdout) lead nowhere.
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
    if (descriptor_ < 0) fail_errno(path_, "cannot be opened for writing");
    return;
  }
  path_ = follow_links(std::move(path_));
  if (exists) {
    if (S_ISDIR(status.st_mode)) fail(path_, "is a folder, expected a file to write");
    if (::faccessat(AT_FDCWD, path_.c_str(), W_OK, AT_EACCESS) != 0) fail_errno(path_, "cannot be replaced");
    mode = status.st_mode & 0777;
  }
  for (int attempt = 0; descriptor_ < 0; ++attempt) {
    temporary_ = folder_of(path_) / fmt::format(".normscope-{:016x}", random_bits(path_));
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && (errno != EEXIST || attempt == 100)) fail_errno(path_, "cannot be written");
  }
  if (mode && ::fchmod(descriptor_, *mode) != 0) {
    const int error = errno;
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
    errno = error;
    fail_errno(path_, "mode cannot be kept");
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  NORMSCOPE_ASSERT(descriptor_ >= 0);
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      fail_errno(path_, "cannot be written");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }

void AtomicFile::commit() {
  NORMSCOPE_ASSERT(descriptor_ >= 0);
  const bool replaces = !temporary_.empty();
  if (replaces && ::fsync(descriptor_) != 0) fail_errno(path_, "cannot be synced");
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_errno(path_, "cannot be closed");
  if (!replaces) return;
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_errno(path_, "cannot be renamed into place");
  temporary_.clear();
  // The file is complete under its name already; some file systems cannot sync a folder.
  const Descriptor folder(::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.value() >= 0) ::fsync(folder.value());
}

}  // namespace normscope
