#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
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

void put(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string get(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::size_t count_files(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

TEST(ListFolder, IsSortedAndSaysWhyItIsNot) {
  const Scratch scratch;
  for (const char* name : {"b", "a", ".c"}) std::ofstream(scratch / name) << "x";
  std::error_code error = std::make_error_code(std::errc::io_error);
  EXPECT_EQ(list_folder(scratch / "", error),
            (std::vector<std::filesystem::path>{scratch / ".c", scratch / "a", scratch / "b"}));
  EXPECT_FALSE(error);
  EXPECT_TRUE(list_folder(scratch / "none", error).empty());
  EXPECT_EQ(error, std::errc::no_such_file_or_directory);
  EXPECT_TRUE(list_folder(scratch / "a", error).empty());
  EXPECT_EQ(error, std::errc::not_a_directory);
}

TEST(MappedFile, HoldsTheFilesBytes) {
  const Scratch scratch;
  put(scratch / "a", std::string("x\0y", 3));
  MappedFile file(scratch / "a");
  EXPECT_EQ(text_of(file), std::string("x\0y", 3));
  MappedFile moved = std::move(file);
  EXPECT_EQ(text_of(moved), std::string("x\0y", 3));
  put(scratch / "b", "other");
  moved = MappedFile(scratch / "b");
  EXPECT_EQ(text_of(moved), "other");
}

TEST(MappedFile, IsEmptyForAnEmptyFile) {
  const Scratch scratch;
  put(scratch / "empty", "");
  EXPECT_TRUE(MappedFile(scratch / "empty").bytes().empty());
}

TEST(MappedFile, NamesWhatItCannotOpen) {
  const Scratch scratch;
  const std::string folder = scratch.folder().string();
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { MappedFile file(scratch / "none"); }),
            "file: " + folder + "/none: cannot be opened: No such file or directory");
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { MappedFile file(scratch.folder()); }),
            "file: " + folder + ": is a folder, expected a regular file");
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { MappedFile file("/dev/null"); }),
            "file: /dev/null: is not a regular file");
}

TEST(MappedFile, DoesNotWaitForAPipesWriter) {
  const Scratch scratch;
  const fs::path pipe = scratch / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { MappedFile file(pipe); }),
            "file: " + pipe.string() + ": is not a regular file");
}

TEST(AtomicFile, AppearsCompleteOnCommitOnly) {
  const Scratch scratch;
  const fs::path path = scratch / "out";
  AtomicFile file(path);
  file.write("first ");
  file.write("second");
  EXPECT_FALSE(fs::exists(path));
  file.commit();
  EXPECT_EQ(get(path), "first second");
  EXPECT_EQ(count_files(scratch.folder()), 1u);
}

TEST(AtomicFile, WithoutCommitLeavesTheOldFileAndNothingElse) {
  const Scratch scratch;
  const fs::path path = scratch / "out";
  put(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
  }
  EXPECT_EQ(get(path), "old");
  EXPECT_EQ(count_files(scratch.folder()), 1u);
}

TEST(AtomicFile, BypassesTheCacheWithTheSameBytes) {
  const Scratch scratch;
  // A file system in memory has nothing else than the cache.
  for (const fs::path& folder : {scratch.folder(), fs::path("/dev/shm") / scratch.folder().filename()}) {
    std::error_code error;
    fs::create_directory(folder, error);
    if (error) continue;
    for (const std::size_t size : {0U, 5U, (1U << 20U) - 1U, 1U << 20U, (1U << 20U) + 4096U, 3'000'019U}) {
      std::string text(size, '\0');
      for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 2654435761U) >> 13U);
      put(folder / "out", "old");
      AtomicFile file(folder / "out");
      file.bypass_cache();
      for (std::size_t at = 0; at < size; at += 700'001) {
        file.write(std::string_view(text).substr(at, 700'001));
      }
      EXPECT_EQ(get(folder / "out"), "old");
      file.commit();
      EXPECT_TRUE(get(folder / "out") == text) << folder << size;
      EXPECT_EQ(count_files(folder), 1U);
    }
    fs::remove_all(folder, error);
  }
}

TEST(AtomicFile, TakesBytesFromWhereTheyAreWhenTheirAddressFits) {
  const Scratch scratch;
  const std::size_t page = 4096;
  std::vector<char> memory(8'000'000);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<char>((i * 2654435761U) >> 13U);
  const std::size_t first = page - reinterpret_cast<std::uintptr_t>(memory.data()) % page;
  for (const std::size_t begin : {std::size_t{0}, std::size_t{1}, std::size_t{100}, page - 1}) {
    for (const std::size_t shift : {std::size_t{0}, std::size_t{8}}) {
      std::string expected(memory.data(), begin);
      AtomicFile file(scratch / "out");
      file.bypass_cache();
      file.write(expected);
      for (const std::size_t size : {3'000'000U, 5U, 2'500'000U}) {
        const char* const from = memory.data() + first + shift + expected.size() % page;
        file.write(std::string_view(from, size));
        expected.append(from, size);
      }
      file.commit();
      EXPECT_TRUE(get(scratch / "out") == expected) << begin << " " << shift;
    }
  }
}

TEST(AtomicFile, BypassesTheCacheFromTheBeginningOnly) {
  const Scratch scratch;
  const std::string large(2'500'000, 'x');
  {
    AtomicFile file(scratch / "begun");
    file.write("begun ");
    file.bypass_cache();
    file.write(large);
    file.commit();
    AtomicFile twice(scratch / "twice");
    twice.bypass_cache();
    twice.write("begun ");
    twice.bypass_cache();
    twice.write(large);
    twice.commit();
    AtomicFile device("/dev/null");
    device.bypass_cache();
    device.write(large);
    device.commit();
  }
  EXPECT_TRUE(get(scratch / "begun") == "begun " + large);
  EXPECT_TRUE(get(scratch / "twice") == "begun " + large);
}

TEST(AtomicFile, WritesThroughTheCacheWhereTheDiskRefuses) {
  const Scratch scratch;
  const std::string large(2'500'000, 'x');
  AtomicFile file(scratch / "out");
  file.bypass_cache();
  // A place that is no multiple of a block stands for a file system that writes nothing without its cache.
  std::string expected = large;
  for (int descriptor = 0; descriptor < 100; ++descriptor) {
    const int flags = ::fcntl(descriptor, F_GETFL);
    if (flags < 0 || (flags & O_DIRECT) == 0) continue;
    ASSERT_EQ(::lseek(descriptor, 1, SEEK_SET), 1);
    expected = std::string(1, '\0') + large;
  }
  file.write(large);
  file.commit();
  EXPECT_TRUE(get(scratch / "out") == expected);
}

TEST(AtomicFile, LargePiecesOfANamedFileArrive) {
  const Scratch scratch;
  const std::string large(1'500'000, 'x');
  AtomicFile file(scratch / "out", AtomicFile::Temporary::named);
  file.write("begun ");
  file.write(large);
  file.write(" ended");
  file.commit();
  EXPECT_TRUE(get(scratch / "out") == "begun " + large + " ended");
}

TEST(AtomicFile, ReplacesAFileThatIsMapped) {
  const Scratch scratch;
  const fs::path path = scratch / "out";
  put(path, "old");
  const MappedFile mapped(path);
  AtomicFile file(path);
  file.write("newer");
  file.commit();
  EXPECT_EQ(text_of(mapped), "old");
  EXPECT_EQ(get(path), "newer");
}

TEST(AtomicFile, HonoursUmaskAndKeepsAnOldFilesMode) {
  const Scratch scratch;
  const mode_t old_mask = ::umask(027);
  AtomicFile fresh(scratch / "fresh");
  fresh.commit();
  ::umask(old_mask);
  EXPECT_EQ(mode_of(scratch / "fresh"), 0640u);

  put(scratch / "kept", "old");
  ASSERT_EQ(::chmod((scratch / "kept").c_str(), 0604), 0);
  AtomicFile kept(scratch / "kept");
  kept.commit();
  EXPECT_EQ(mode_of(scratch / "kept"), 0604u);
}

TEST(AtomicFile, ReplacesWhatALinkPointsTo) {
  const Scratch scratch;
  fs::create_directory(scratch / "folder");
  put(scratch / "folder/target", "old");
  fs::create_symlink("folder/target", scratch / "inner");
  fs::create_symlink("inner", scratch / "link");
  AtomicFile file(scratch / "link");
  file.write("new");
  file.commit();
  EXPECT_TRUE(fs::is_symlink(scratch / "link"));
  EXPECT_EQ(get(scratch / "folder/target"), "new");
}

TEST(AtomicFile, CreatesWhatADanglingLinkPointsTo) {
  const Scratch scratch;
  fs::create_symlink("later", scratch / "link");
  AtomicFile file(scratch / "link");
  file.write("new");
  file.commit();
  EXPECT_TRUE(fs::is_symlink(scratch / "link"));
  EXPECT_EQ(get(scratch / "later"), "new");
}

TEST(AtomicFile, FollowsAsManyLinksAsTheKernel) {
  const Scratch scratch;
  for (int i = 1; i <= 41; ++i) {
    fs::create_symlink(std::to_string(i - 1), scratch / std::to_string(i));
  }
  AtomicFile file(scratch / "40");
  file.write("new");
  file.commit();
  EXPECT_EQ(get(scratch / "0"), "new");
  EXPECT_NE(error_of(ErrorCode::Io, [&] { AtomicFile longer(scratch / "41"); }).find("symbolic links"),
            std::string::npos);
}

TEST(AtomicFile, RefusesALinkWhoseTargetCannotBeExamined) {
  const Scratch scratch;
  fs::create_symlink(std::string(300, 'x'), scratch / "link");
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { AtomicFile file(scratch / "link"); }),
            "file: " + (scratch / "link").string() + ": cannot be written: File name too long");
}

/// A process that has begun to write into `folder`, until it is killed.
class Writer {
 public:
  explicit Writer(const fs::path& folder) {
    const fs::path begun = folder / "begun";
    process_ = ::fork();
    if (process_ == 0) {
      AtomicFile file(folder / "out");
      file.write("half");
      put(begun, "");
      while (true) ::pause();
    }
    while (process_ > 0 && !fs::exists(begun)) ::usleep(1000);
    fs::remove(begun);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { kill(); }

  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(std::exchange(process_, 0), nullptr, 0);
  }

 private:
  pid_t process_ = 0;
};

void write_once(const fs::path& path) {
  AtomicFile file(path);
  file.write("whole");
  file.commit();
}

TEST(AtomicFile, LeavesNothingOfADeadProcessWhereFilesNeedNoName) {
  const Scratch scratch;
  const int unnamed = ::open(scratch.folder().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (unnamed < 0) GTEST_SKIP() << "this file system has no unnamed files";
  ::close(unnamed);
  Writer writer(scratch.folder());
  EXPECT_EQ(count_files(scratch.folder()), 0u);
  writer.kill();
  EXPECT_EQ(count_files(scratch.folder()), 0u);
}

TEST(AtomicFile, ReplacesFromANamedFileToo) {
  const Scratch scratch;
  put(scratch / "out", "old");
  AtomicFile file(scratch / "out", AtomicFile::Temporary::named);
  file.write("new");
  EXPECT_EQ(get(scratch / "out"), "old");
  file.commit();
  EXPECT_EQ(get(scratch / "out"), "new");
  EXPECT_EQ(count_files(scratch.folder()), 1u);
}

TEST(AtomicGroup, FilesAppearTogether) {
  const Scratch scratch;
  put(scratch / "b", "old");
  AtomicGroup group;
  {
    AtomicFile a(scratch / "a");
    a.write("1");
    a.commit();
  }
  AtomicFile b(scratch / "b", AtomicFile::Temporary::named);
  b.write("2");
  b.commit();
  EXPECT_FALSE(fs::exists(scratch / "a"));
  EXPECT_EQ(get(scratch / "b"), "old");
  group.commit();
  EXPECT_EQ(get(scratch / "a"), "1");
  EXPECT_EQ(get(scratch / "b"), "2");
  EXPECT_EQ(count_files(scratch.folder()), 2u);
}

TEST(AtomicGroup, WithoutCommitLeavesNothing) {
  const Scratch scratch;
  put(scratch / "b", "old");
  {
    AtomicGroup group;
    write_once(scratch / "a");
    AtomicFile b(scratch / "b", AtomicFile::Temporary::named);
    b.commit();
  }
  EXPECT_EQ(get(scratch / "b"), "old");
  EXPECT_EQ(count_files(scratch.folder()), 1u);
  write_once(scratch / "a");  // the group is gone
  EXPECT_EQ(get(scratch / "a"), "whole");
}

TEST(AtomicFile, WritesPlainlyToADevice) {
  AtomicFile file("/dev/null");
  file.write("gone");
  file.commit();
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST(AtomicFile, NamesWhatItCannotWrite) {
  const Scratch scratch;
  const std::string folder = scratch.folder().string();
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { AtomicFile file(scratch / "none/out"); }),
            "file: " + folder + "/none/out: cannot be written: No such file or directory");
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { AtomicFile file(scratch.folder()); }),
            "file: " + folder + ": is a folder, expected a file to write");
  fs::create_symlink("loop", scratch / "loop");
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { AtomicFile file(scratch / "loop"); }),
            "file: " + folder + "/loop: cannot be written: Too many levels of symbolic links");
}

TEST(AtomicFile, ReportsAFullDeviceAndLeavesNothingBehind) {
  AtomicFile file("/dev/full");
  EXPECT_EQ(error_of(ErrorCode::Io, [&] { file.write("x"); }),
            "file: /dev/full: cannot be written: No space left on device");
}

}  // namespace
}  // namespace normscope
