#include <normscope/core/unchanged.hpp>

#include <sys/stat.h>

#include <fmt/core.h>

#include "descriptor.hpp"

namespace normscope {

bool UnchangedFiles::examine(Noted& noted) {
  struct stat status {};
  if (::stat(noted.file.c_str(), &status) != 0) return false;
#ifdef __APPLE__
  const timespec changed = status.st_mtimespec;
#else
  const timespec changed = status.st_mtim;
#endif
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

}  // namespace normscope
