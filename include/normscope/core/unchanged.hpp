#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace normscope {

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

}  // namespace normscope
