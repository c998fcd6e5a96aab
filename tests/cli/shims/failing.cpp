// A library to preload: the K-th call of one kind in the process fails, and every later one, too, if the disk
// stays full. NORMSCOPE_FAIL=KIND:K[:always], where KIND is read, write, fsync, rename, link, stat,
// random, or what some file systems do not have: map, lock, mode; K counts from 1. With K = 0 nothing fails.
// At the end the number of calls is written to the file NORMSCOPE_FAIL_COUNT.
//
// KIND power: before the K-th call that changes a file the power fails. Every file loses what was written to
// it since its last fsync, and the process ends. What is written is taken to be appended, as it is everywhere
// in this program.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace {

struct Plan {
  const char* kind = "";
  std::size_t kind_length = 0;
  long at = 0;
  bool always = false;
};

std::atomic<long> calls = 0;
Plan plan;
bool ready = false;

__attribute__((constructor(101))) void prepare() {
  const char* text = std::getenv("NORMSCOPE_FAIL");
  if (text == nullptr) return;
  const char* colon = std::strchr(text, ':');
  if (colon == nullptr) return;
  plan.kind = text;
  plan.kind_length = static_cast<std::size_t>(colon - text);
  plan.at = std::strtol(colon + 1, nullptr, 10);
  plan.always = std::strstr(colon + 1, ":always") != nullptr;
  ready = true;
}

__attribute__((destructor)) void report() {
  const char* name = std::getenv("NORMSCOPE_FAIL_COUNT");
  if (!ready || name == nullptr) return;
  ready = false;
  char text[32];
  const int length = std::snprintf(text, sizeof text, "%ld\n", calls.load());
  const int file = ::open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return;
  if (::write(file, text, static_cast<std::size_t>(length)) != length) ::unlink(name);
  ::close(file);
}

bool fails(const char* kind) {
  if (!ready || std::strlen(kind) != plan.kind_length || std::strncmp(kind, plan.kind, plan.kind_length) != 0)
    return false;
  const long call = ++calls;
  return plan.at > 0 && (plan.always ? call >= plan.at : call == plan.at);
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

/// A file that was written to since it was last synced.
struct Unsynced {
  int file;  ///< a descriptor of its own, since the program may close the file's
  dev_t device;
  ino_t inode;
  off_t synced;  ///< its size at that time
};

std::mutex unsynced_mutex;
Unsynced unsynced[256];
std::size_t unsynced_count = 0;

Unsynced* find_unsynced(const struct stat& status) {
  for (std::size_t i = 0; i < unsynced_count; ++i) {
    if (unsynced[i].device == status.st_dev && unsynced[i].inode == status.st_ino) return &unsynced[i];
  }
  return nullptr;
}

bool simulates_power() { return ready && std::strncmp(plan.kind, "power:", 6) == 0; }

/// Before a call that changes a file.
void may_lose_power() {
  if (!simulates_power() || !fails("power")) return;
  for (std::size_t i = 0; i < unsynced_count; ++i) {
    if (::ftruncate(unsynced[i].file, unsynced[i].synced) != 0) ::_exit(70);
  }
  ::_exit(9);
}

void note_write(int file) {
  if (!simulates_power()) return;
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return;
  const std::lock_guard lock(unsynced_mutex);
  if (find_unsynced(status) != nullptr) return;
  if (unsynced_count == sizeof unsynced / sizeof *unsynced) ::_exit(70);
  unsynced[unsynced_count++] = {::fcntl(file, F_DUPFD_CLOEXEC, 0), status.st_dev, status.st_ino,
                                status.st_size};
}

void note_sync(int file) {
  if (!simulates_power()) return;
  struct stat status {};
  if (::fstat(file, &status) != 0) return;
  const std::lock_guard lock(unsynced_mutex);
  Unsynced* const found = find_unsynced(status);
  if (found == nullptr) return;
  ::close(found->file);
  *found = unsynced[--unsynced_count];
}

}  // namespace

extern "C" {

ssize_t read(int file, void* buffer, std::size_t size) {
  static auto* const real = next<ssize_t(int, void*, std::size_t)>("read");
  if (!fails("read")) return real(file, buffer, size);
  errno = EIO;
  return -1;
}

ssize_t write(int file, const void* buffer, std::size_t size) {
  static auto* const real = next<ssize_t(int, const void*, std::size_t)>("write");
  // Lines of errors must come through; only files and standard output fail.
  if (file == STDERR_FILENO) return real(file, buffer, size);
  may_lose_power();
  note_write(file);
  if (!fails("write")) return real(file, buffer, size);
  errno = ENOSPC;
  return -1;
}

/// How the C++ library copies a file.
ssize_t sendfile(int to, int from, off_t* offset, std::size_t size) {
  static auto* const real = next<ssize_t(int, int, off_t*, std::size_t)>("sendfile");
  may_lose_power();
  note_write(to);
  if (!fails("write")) return real(to, from, offset, size);
  errno = ENOSPC;
  return -1;
}

int fsync(int file) {
  static auto* const real = next<int(int)>("fsync");
  may_lose_power();
  if (fails("fsync")) {
    errno = EIO;
    return -1;
  }
  const int result = real(file);
  if (result == 0) note_sync(file);
  return result;
}

int rename(const char* from, const char* to) {
  static auto* const real = next<int(const char*, const char*)>("rename");
  may_lose_power();
  if (!fails("rename")) return real(from, to);
  errno = EIO;
  return -1;
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  static auto* const real = next<int(int, const char*, int, const char*, int)>("linkat");
  may_lose_power();
  if (!fails("link")) return real(from_folder, from, to_folder, to, flags);
  errno = ENOSPC;
  return -1;
}

/// Counters of clang's coverage are mapped as shared.
void* mmap(void* address, std::size_t size, int protection, int flags, int file, off_t offset) {
  static auto* const real = next<void*(void*, std::size_t, int, int, int, off_t)>("mmap");
  if (file < 0 || (flags & MAP_PRIVATE) == 0 || !fails("map"))
    return real(address, size, protection, flags, file, offset);
  errno = ENODEV;
  return MAP_FAILED;
}

int flock(int file, int operation) {
  static auto* const real = next<int(int, int)>("flock");
  if (!fails("lock")) return real(file, operation);
  errno = ENOLCK;
  return -1;
}

int fchmod(int file, mode_t mode) {
  static auto* const real = next<int(int, mode_t)>("fchmod");
  if (!fails("mode")) return real(file, mode);
  errno = EPERM;
  return -1;
}

int fstat(int file, struct stat* status) {
  static auto* const real = next<int(int, struct stat*)>("fstat");
  if (!fails("stat")) return real(file, status);
  errno = EIO;
  return -1;
}

int getentropy(void* buffer, std::size_t size) {
  static auto* const real = next<int(void*, std::size_t)>("getentropy");
  if (!fails("random")) return real(buffer, size);
  errno = ENOSYS;
  return -1;
}

}  // extern "C"
