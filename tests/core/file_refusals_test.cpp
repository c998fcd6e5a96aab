#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::Scratch;

/// A lower limit of this process while it exists.
class Limited {
 public:
  Limited(decltype(RLIMIT_NOFILE) kind, rlim_t most) : kind_(kind) {
    EXPECT_EQ(::getrlimit(kind_, &before_), 0);
    rlimit less = before_;
    less.rlim_cur = most;
    EXPECT_EQ(::setrlimit(kind_, &less), 0);
  }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;
  ~Limited() { EXPECT_EQ(::setrlimit(kind_, &before_), 0); }

 private:
  decltype(RLIMIT_NOFILE) kind_;
  rlimit before_{};
};

/// Takes the superuser's rights away while it exists.
class Plain {
 public:
  Plain() { has_rights_ = before_ == 0 && ::seteuid(65534) != 0; }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;
  ~Plain() { EXPECT_EQ(::seteuid(before_), 0); }
  /// Whether the system did not let them go.
  [[nodiscard]] bool has_rights() const { return has_rights_; }

 private:
  uid_t before_ = ::geteuid();
  bool has_rights_ = false;
};

std::string text_in(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t entries_of(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(RangedFile, ReadsAtAnyOffset) {
  const Scratch scratch;
  std::ofstream(scratch / "a") << "0123456789";
  const RangedFile file(scratch / "a");
  EXPECT_EQ(file.size(), 10U);
  std::string part(3, ' ');
  for (const std::uint64_t offset : {7U, 0U, 4U}) {
    file.read(offset, std::as_writable_bytes(std::span(part)));
    EXPECT_EQ(part, std::string("0123456789").substr(offset, 3));
  }
  const auto reads = [&] { file.read(8, std::as_writable_bytes(std::span(part))); };
  EXPECT_NE(error_of(ErrorCode::Io, reads).find("ends early"), std::string::npos);
  EXPECT_NE(error_of(ErrorCode::Io, [&] { RangedFile folder(scratch.folder()); }).find("is a folder"),
            std::string::npos);
  EXPECT_NE(error_of(ErrorCode::Io, [&] { RangedFile none(scratch / "none"); }).find("cannot be opened"),
            std::string::npos);
}

TEST(RangedFile, SaysWhyAPartCannotBeRead) {
  const Scratch scratch;
  test::put(scratch / "a", "0123456789");
  const RangedFile file(scratch / "a");
  std::byte part[8];
  // Larger than any offset that a system has.
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { file.read(std::numeric_limits<std::uint64_t>::max(), part); }),
            "file: " + (scratch / "a").string() + ": cannot be read: Invalid argument");
  const char* const memory = "/proc/self/mem";
  if (::access(memory, R_OK) != 0) GTEST_SKIP() << "no file that fails";
  // At the address 0 there is nothing to read.
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { RangedFile(memory).read(0, part); }),
            "file: /proc/self/mem: cannot be read: Input/output error");
}

TEST(MappedFile, RefusesUnreadableFiles) {
  const Plain plain;
  if (plain.has_rights()) GTEST_SKIP() << "the superuser reads every file";
  const Scratch scratch;
  test::put(scratch / "secret", "x");
  ASSERT_EQ(::chmod((scratch / "secret").c_str(), 0), 0);
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { MappedFile file(scratch / "secret"); }),
            "file: " + (scratch / "secret").string() + ": cannot be opened: Permission denied");
}

TEST(MappedFile, ReadsWhatItsFileSystemDoesNotMap) {
  const fs::path notes = "/sys/kernel/notes";
  const std::string text = text_in(notes);
  std::error_code error;
  if (text.empty() || fs::file_size(notes, error) != text.size()) GTEST_SKIP() << "no such file system";
  MappedFile file(notes);
  const MappedFile moved = std::move(file);
  EXPECT_TRUE(std::equal(text.begin(), text.end(), reinterpret_cast<const char*>(moved.bytes().data()),
                         reinterpret_cast<const char*>(moved.bytes().data()) + moved.bytes().size()));
  EXPECT_TRUE(file.bytes().empty());
  // Such files state the size of a page, whatever they have.
  const fs::path number = "/sys/kernel/uevent_seqnum";
  if (fs::file_size(number, error) > text_in(number).size() && !error) {
    EXPECT_EQ(error_of(ErrorCode::Io, [&] { MappedFile short_file(number); }),
              "file: /sys/kernel/uevent_seqnum: ends early: it was changed while it was read");
  }
}

TEST(SpelledOut, IsAbsoluteAndWithoutDots) {
  EXPECT_EQ(spelled_out("/a/./b/../c"), "/a/c");
  EXPECT_EQ(spelled_out("a/../b"), fs::current_path() / "b");
}

TEST(SpelledOut, KeepsTheNameWhereTheWorkingDirectoryIsDeleted) {
  const fs::path before = fs::current_path();
  const Scratch scratch;
  fs::create_directory(scratch / "gone");
  fs::current_path(scratch / "gone");
  fs::remove(scratch / "gone");
  EXPECT_EQ(spelled_out("a/./b/../c"), "a/c");
  EXPECT_EQ(spelled_out("/a/../b"), "/b");
  fs::current_path(before);
}

TEST(AtomicFile, NamesThatCannotBeWrittenAreRefused) {
  const Scratch scratch;
  EXPECT_NE(error_of(ErrorCode::Io, [] { AtomicFile file(""); }).find("has no name"), std::string::npos);
  fs::create_symlink("b", scratch / "a");
  fs::create_symlink("a", scratch / "b");
  EXPECT_NE(error_of(ErrorCode::Io, [&] { AtomicFile file(scratch / "a"); })
                .find("Too many levels of symbolic links"),
            std::string::npos);
  EXPECT_FALSE(error_of(ErrorCode::Io, [&] { AtomicFile file(scratch / "none/file"); }).empty());
  const fs::path socket = scratch / "socket";
  ASSERT_EQ(::mknod(socket.c_str(), S_IFSOCK | 0600, 0), 0);
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { AtomicFile file(socket); }),
            "file: " + socket.string() + ": cannot be opened for writing: No such device or address");
}

TEST(AtomicFile, NeedsTheRightsOfItsUser) {
  const Plain plain;
  if (plain.has_rights()) GTEST_SKIP() << "the superuser writes every file";
  const Scratch scratch;
  const std::string folder = scratch.folder().string();
  test::put(scratch / "kept", "old");
  ASSERT_EQ(::chmod((scratch / "kept").c_str(), 0444), 0);
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { AtomicFile file(scratch / "kept"); }),
            "file: " + folder + "/kept: cannot be replaced: Permission denied");
  // A folder that does not show what is in it takes files nevertheless.
  ASSERT_EQ(::chmod(folder.c_str(), 0300), 0);
  for (const auto kind : {AtomicFile::Temporary::unnamed, AtomicFile::Temporary::named}) {
    AtomicFile file(scratch / "new", kind);
    file.write("whole");
    file.commit();
  }
  ASSERT_EQ(::chmod(folder.c_str(), 0500), 0);
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { AtomicFile file(scratch / "other"); }),
            "file: " + folder + "/other: cannot be written: Permission denied");
  ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  EXPECT_EQ(text_in(scratch / "kept"), "old");
  EXPECT_EQ(text_in(scratch / "new"), "whole");
  EXPECT_EQ(entries_of(scratch.folder()), 2U);
}

TEST(AtomicFile, CommitsWithoutAFreeDescriptor) {
  const Scratch scratch;
  AtomicFile file(scratch / "out");
  file.write("whole");
  // UndefinedBehaviorSanitizer opens a pipe when it first checks an object of a type.
  EXPECT_NE(error_of(ErrorCode::Io, [&] { MappedFile other(scratch / "absent"); }), "");
  {
    const Limited none(RLIMIT_NOFILE, 0);
    EXPECT_EQ(error_of(ErrorCode::Io, [&] { AtomicFile other(scratch / "other"); }),
              "file: " + (scratch / "other").string() + ": cannot be written: Too many open files");
    EXPECT_EQ(error_of(ErrorCode::Io, [&] { MappedFile other(scratch.folder()); }),
              "file: " + scratch.folder().string() + ": cannot be opened: Too many open files");
    EXPECT_EQ(sync_to_disk(scratch.folder()), std::errc::too_many_files_open);
    file.commit();
  }
  EXPECT_EQ(text_in(scratch / "out"), "whole");
  EXPECT_EQ(entries_of(scratch.folder()), 1U);
}

TEST(AtomicFile, BeyondALimitOnSizesTheOldFileIsKept) {
  const Scratch scratch;
  test::put(scratch / "out", "old");
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  {
    AtomicFile file(scratch / "out");
    const Limited small(RLIMIT_FSIZE, 1000);
    file.write(std::string(900, 'x'));
    EXPECT_EQ(error_of(ErrorCode::Io, [&] { file.write(std::string(200, 'x')); }),
              "file: " + (scratch / "out").string() + ": cannot be written: File too large");
  }
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(text_in(scratch / "out"), "old");
  EXPECT_EQ(entries_of(scratch.folder()), 1U);
}

TEST(AtomicFile, NothingIsLeftWhereItCannotAppear) {
  for (const auto kind : {AtomicFile::Temporary::unnamed, AtomicFile::Temporary::named}) {
    const Scratch scratch;
    {
      AtomicFile file(scratch / "out", kind);
      fs::create_directory(scratch / "out");
      EXPECT_EQ(error_of(ErrorCode::Io, [&] { file.commit(); }),
                "file: " + (scratch / "out").string() + ": cannot be renamed into place: Is a directory");
    }
    EXPECT_TRUE(fs::is_directory(scratch / "out"));
    EXPECT_EQ(entries_of(scratch.folder()), 1U);
    AtomicFile file(scratch / "out/inner", kind);
    fs::remove_all(scratch / "out");
    const std::string text = error_of(ErrorCode::Io, [&] { file.commit(); });
    EXPECT_NE(text.find("/out/inner: cannot be "), std::string::npos) << text;
    EXPECT_NE(text.find(": No such file or directory"), std::string::npos) << text;
    EXPECT_EQ(entries_of(scratch.folder()), 0U);
  }
}

TEST(AtomicFile, SignalsDoNotEndAWrite) {
  const Scratch scratch;
  const fs::path pipe = scratch / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  AtomicFile file(pipe);
  // A full pipe makes the next writer wait.
  const int filler = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  const std::string dots(4096, '.');
  std::size_t filled = 0;
  for (ssize_t written = 0; (written = ::write(filler, dots.data(), dots.size())) > 0;) {
    filled += static_cast<std::size_t>(written);
  }
  ::close(filler);
  static std::atomic<int> signals = 0;
  struct sigaction counted {};
  struct sigaction before {};
  counted.sa_handler = [](int) { ++signals; };
  ASSERT_EQ(::sigaction(SIGUSR1, &counted, &before), 0);
  const pthread_t writer = ::pthread_self();
  std::thread other([&] {
    while (signals < 20) {
      ::pthread_kill(writer, SIGUSR1);
      ::usleep(1000);
    }
    std::string read(filled, ' ');
    for (std::size_t at = 0; at < filled;) {
      const ssize_t count = ::read(reader, read.data() + at, filled - at);
      if (count > 0) at += static_cast<std::size_t>(count);
    }
    EXPECT_EQ(read.find_first_not_of('.'), std::string::npos);
  });
  EXPECT_NO_THROW(file.write("x"));
  EXPECT_NO_THROW(file.commit());
  other.join();
  char last[2];
  EXPECT_EQ(::read(reader, last, sizeof last), 1);
  EXPECT_EQ(last[0], 'x');
  ::close(reader);
  EXPECT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
}

}  // namespace
}  // namespace normscope
