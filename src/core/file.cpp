#include <normscope/core/file.hpp>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include <normscope/core/text.hpp>

#include "descriptor.hpp"

namespace normscope {
namespace {

namespace fs = std::filesystem;

/// The nearest folder or file on the way to a path that exists, and the rest of the way.
struct Place {
  fs::path existing;
  fs::path rest{};
};

Place place_of(const fs::path& path) {
  std::error_code missing;
  // Links are followed as far as they lead to something, so that parents are those of the file itself.
  fs::path whole = fs::weakly_canonical(path, missing);
  if (missing) whole = spelled_out(path);
  Place place{spelled_out(whole)};
  if (place.existing.has_relative_path() && !place.existing.has_filename()) {
    place.existing = place.existing.parent_path();
  }
  while (!fs::exists(place.existing, missing) && place.existing.has_relative_path()) {
    place.rest = place.rest.empty() ? place.existing.filename() : place.existing.filename() / place.rest;
    place.existing = place.existing.parent_path();
  }
  return place;
}

bool is_same_existing(const fs::path& a, const fs::path& b) {
  std::error_code missing;
  return fs::equivalent(a, b, missing);
}

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

bool is_same_place(const fs::path& a, const fs::path& b) {
  const Place first = place_of(a);
  const Place second = place_of(b);
  return first.rest == second.rest &&
         (first.existing == second.existing || is_same_existing(first.existing, second.existing));
}

bool lies_within(const fs::path& path, const fs::path& folder) {
  if (is_same_place(path, folder)) return true;
  fs::path parent = place_of(path).existing;
  while (!is_same_existing(parent, folder)) {
    if (!parent.has_relative_path()) return false;
    parent = parent.parent_path();
  }
  return true;
}

namespace {

timespec last_change(const struct stat& status) {
#ifdef __APPLE__
  return status.st_mtimespec;
#else
  return status.st_mtim;
#endif
}

}  // namespace

bool UnchangedFiles::examine(Noted& noted) {
  struct stat status {};
  if (::stat(noted.file.c_str(), &status) != 0) return false;
  const timespec changed = last_change(status);
  noted.device = static_cast<std::uint64_t>(status.st_dev);
  noted.number = static_cast<std::uint64_t>(status.st_ino);
  noted.size = static_cast<std::uint64_t>(status.st_size);
  noted.seconds = static_cast<std::int64_t>(changed.tv_sec);
  noted.nanoseconds = static_cast<std::int64_t>(changed.tv_nsec);
  return S_ISREG(status.st_mode);
}

UnchangedFiles& inputs_of_process() {
  static UnchangedFiles inputs;
  return inputs;
}

void UnchangedFiles::note(const std::filesystem::path& file) {
  Noted noted{file};
  if (examine(noted)) files_.push_back(std::move(noted));
}

void UnchangedFiles::expect() const {
  for (const Noted& then : files_) {
    Noted now{then.file};
    const bool is_there = examine(now);
    const bool is_same = is_there && now.device == then.device && now.number == then.number;
    if (is_same && now.size == then.size && now.seconds == then.seconds &&
        now.nanoseconds == then.nanoseconds) {
      continue;
    }
    fail(then.file, fmt::format("was {} since it was opened, expected the same file to the end",
                                is_same    ? "changed"
                                : is_there ? "replaced"
                                           : "removed"));
  }
}

namespace {

using std::filesystem::path;

struct Regular {
  Descriptor descriptor;
  struct stat status {};
  std::uint64_t size = 0;
};

Regular open_regular(const path& file) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer.
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) fail_errno(file, "cannot be opened");
  Regular result{Descriptor(descriptor)};
  struct stat& status = result.status;
  if (::fstat(descriptor, &status) != 0) fail_errno(file, "cannot be examined");
  if (S_ISDIR(status.st_mode)) fail(file, "is a folder, expected a regular file");
  if (!S_ISREG(status.st_mode)) fail(file, "is not a regular file");
  result.size = static_cast<std::uint64_t>(status.st_size);
  return result;
}

/// Uses lseek and read, because pread takes only 32-bit offsets in WebAssembly's file systems.
void read_range(int descriptor, const path& file, std::uint64_t offset, std::span<std::byte> out) {
  if (::lseek(descriptor, static_cast<off_t>(offset), SEEK_SET) < 0) fail_errno(file, "cannot be read");
  while (!out.empty()) {
    const ssize_t count = ::read(descriptor, out.data(), out.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_errno(file, "cannot be read");
    if (count == 0) fail(file, "ends early: it was changed while it was read");
    out = out.subspan(static_cast<std::size_t>(count));
  }
}

/// A mapping, for the handler of signals, which cannot wait for a lock. Entries are used again and never
/// freed.
struct Mapping {
  std::atomic<const std::byte*> begin{nullptr};  ///< null while the entry is free or being written
  std::atomic<std::size_t> size{0};
  std::array<char, 500> name{};
  std::atomic<std::size_t> name_size{0};
  Mapping* next = nullptr;
};
std::atomic<Mapping*> mappings{nullptr};
std::mutex mappings_changing;

void note_mapping(const std::byte* begin, std::size_t size, const std::string& name) {
  const std::lock_guard lock(mappings_changing);
  Mapping* entry = mappings;
  while (entry != nullptr && entry->begin != nullptr) entry = entry->next;
  const bool is_new = entry == nullptr;
  if (is_new) {
    entry = new Mapping;
    entry->next = mappings;
  }
  entry->size = size;
  entry->name_size = std::min(name.size(), entry->name.size());
  std::copy_n(name.begin(), entry->name_size.load(), entry->name.begin());
  entry->begin = begin;
  if (is_new) mappings = entry;
}

void forget_mapping(const std::byte* begin) {
  const std::lock_guard lock(mappings_changing);
  for (Mapping* entry = mappings; entry != nullptr; entry = entry->next) {
    if (entry->begin == begin) entry->begin = nullptr;
  }
}

thread_local MappedFilesOfCall* files_of_call = nullptr;

#ifndef __EMSCRIPTEN__
struct sigaction handled_before {};
void (*lost_file)(std::string_view file) = nullptr;

/// Replaces the page at `address` and those after it, up to the end of the mapping, by zeros.
bool fill_up(const Mapping& entry, std::uintptr_t address) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(entry.begin.load());
  const std::uintptr_t from = address - address % page;
  const std::size_t size = begin + entry.size - from;
  return ::mmap(reinterpret_cast<void*>(from), size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

/// Only calls what a handler of signals may call; mmap is a system call without state of its own.
extern "C" void on_bus_error(int signal, siginfo_t* fault, void* context) {
  const int error = errno;
  const auto at = reinterpret_cast<std::uintptr_t>(fault->si_addr);
  for (const Mapping* entry = mappings; entry != nullptr && fault->si_code > 0; entry = entry->next) {
    const auto begin = reinterpret_cast<std::uintptr_t>(entry->begin.load());
    if (begin == 0 || at < begin || at - begin >= entry->size) continue;
    if (lost_file != nullptr) lost_file({entry->name.data(), entry->name_size});
    if (fill_up(*entry, at)) {
      errno = error;
      return;
    }
  }
  if ((handled_before.sa_flags & SA_SIGINFO) != 0) {
    handled_before.sa_sigaction(signal, fault, context);
  } else if (handled_before.sa_handler != SIG_DFL && handled_before.sa_handler != SIG_IGN) {
    handled_before.sa_handler(signal);
  } else {
    // A fault comes again after the handler and then ends the process.
    ::signal(SIGBUS, SIG_DFL);
    if (fault->si_code <= 0) ::raise(SIGBUS);
  }
}
#endif

}  // namespace

void handle_shortened_files([[maybe_unused]] void (*lost)(std::string_view file)) {
#ifndef __EMSCRIPTEN__
  static const bool is_installed = [lost] {
    lost_file = lost;
    struct sigaction wanted {};
    wanted.sa_sigaction = on_bus_error;
    wanted.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGBUS, &wanted, &handled_before);
    return true;
  }();
  static_cast<void>(is_installed);
#endif
}

/// The file itself, whatever happens to its name: what the call writes gets its name in the end.
struct MappedFilesOfCall::Noted {
  path file;
  Descriptor descriptor;
  struct stat then {};
};

MappedFilesOfCall::MappedFilesOfCall() : outer_(std::exchange(files_of_call, this)) {}

MappedFilesOfCall::~MappedFilesOfCall() { files_of_call = outer_; }

void MappedFilesOfCall::expect_unchanged() const {
  for (const Noted& noted : files_) {
    struct stat now {};
    const bool is_there = ::fstat(noted.descriptor.value(), &now) == 0;
    const timespec before = last_change(noted.then);
    const timespec after = last_change(now);
    if (is_there && now.st_size == noted.then.st_size && before.tv_sec == after.tv_sec &&
        before.tv_nsec == after.tv_nsec) {
      continue;
    }
    fail(noted.file, "was changed since it was opened, expected the same bytes to the end");
  }
}

MappedFile::MappedFile(const path& file) {
  Regular regular = open_regular(file);
  if (regular.size > static_cast<std::uint64_t>(std::numeric_limits<std::ptrdiff_t>::max())) {
    fail(file, fmt::format("has {} bytes, more than this machine can address", regular.size));
  }
  const auto size = static_cast<std::size_t>(regular.size);
  if (size == 0) return;
  const std::string name = printable(file.string());
  void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, regular.descriptor.value(), 0);
  if (mapping != MAP_FAILED) {
    data_ = static_cast<const std::byte*>(mapping);
    note_mapping(data_, size, name);
    if (files_of_call != nullptr) {
      handle_shortened_files();
      files_of_call->files_.push_back({file, std::move(regular.descriptor), regular.status});
    }
  } else if (errno == ENODEV) {
    read_ = std::make_unique<std::byte[]>(size);
    read_range(regular.descriptor.value(), file, 0, {read_.get(), size});
    data_ = read_.get();
  } else {
    fail_errno(file, "cannot be mapped");
  }
  size_ = size;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      read_(std::move(other.read_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(read_, other.read_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr || read_) return;
  forget_mapping(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
}

RangedFile::RangedFile(path file) : path_(std::move(file)) {
  Regular regular = open_regular(path_);
  size_ = regular.size;
  descriptor_ = regular.descriptor.release();
}

RangedFile::~RangedFile() { ::close(descriptor_); }

void RangedFile::read(std::uint64_t offset, std::span<std::byte> out) const {
  read_range(descriptor_, path_, offset, out);
}

path spelled_out(const path& file) {
  std::error_code error;
  const path whole = std::filesystem::absolute(file, error);
  return (error ? file : whole).lexically_normal();
}

std::vector<path> list_folder(const path& folder, std::error_code& error) {
  struct Close {
    void operator()(DIR* open) const { ::closedir(open); }
  };
  std::vector<path> paths;
  const std::unique_ptr<DIR, Close> open(::opendir(folder.c_str()));
  int code = open ? 0 : errno;
  while (open) {
    errno = 0;
    const dirent* const entry = ::readdir(open.get());
    if (entry == nullptr) {
      code = errno;
      break;
    }
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") paths.push_back(folder / name);
  }
  error.assign(code, std::generic_category());
  std::sort(paths.begin(), paths.end());
  return paths;
}

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
