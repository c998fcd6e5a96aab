#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using test::Scratch;

TEST(FolderLock, OneHoldsIt) {
  const Scratch scratch;
  FolderLock first(scratch.folder());
  EXPECT_TRUE(first.is_held());
  EXPECT_FALSE(FolderLock(scratch.folder()).is_held());
  FolderLock second(std::move(first));
  EXPECT_FALSE(FolderLock(scratch.folder()).is_held());
  second = FolderLock();
  EXPECT_TRUE(FolderLock(scratch.folder()).is_held());
}

TEST(FolderLock, IsOneOfAFolderThatExists) {
  const Scratch scratch;
  std::ofstream(scratch / "file") << "x";
  fs::create_directory(scratch / "folder");
  fs::create_directory_symlink("folder", scratch / "link");
  EXPECT_FALSE(FolderLock(scratch / "none").is_held());
  EXPECT_FALSE(FolderLock(scratch / "file").is_held());
  EXPECT_FALSE(FolderLock(scratch / "link").is_held());
}

TEST(FolderLock, IsOneOfTheFolderThatHasTheName) {
  const Scratch scratch;
  const fs::path folder = scratch / "folder";
  // Each removes the folder that it holds, which the other may have opened before and must not take for the
  // next one.
  const auto take_turns = [&] {
    for (int i = 0; i < 300; ++i) {
      ::mkdir(folder.c_str(), 0700);
      const FolderLock lock(folder);
      if (!lock.is_held()) continue;
      const int mark = ::open((folder / "mark").c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
      EXPECT_GE(mark, 0) << "another one holds it, or it is gone";
      ::close(mark);
      remove_folder(folder);
    }
  };
  std::thread other(take_turns);
  take_turns();
  other.join();
}

TEST(RemoveFolder, TakesWhatIsInItAndFollowsNoLink) {
  const Scratch scratch;
  fs::create_directories(scratch / "folder/a/b");
  fs::create_directory(scratch / "other");
  std::ofstream(scratch / "other/kept") << "x";
  // More than one read of the folder's entries.
  for (int i = 0; i < 500; ++i) std::ofstream(scratch / ("folder/a/" + std::to_string(i))) << "x";
  fs::create_directory_symlink("../other", scratch / "folder/link");
  fs::create_directory_symlink("other", scratch / "link");
  remove_folder(scratch / "folder");
  EXPECT_FALSE(fs::exists(scratch / "folder"));
  remove_folder(scratch / "link");
  EXPECT_TRUE(fs::exists(scratch / "other/kept"));
  remove_folder(scratch / "none");
}

TEST(SyncToDisk, SaysWhyItCannot) {
  const Scratch scratch;
  std::ofstream(scratch / "file") << "x";
  EXPECT_FALSE(sync_to_disk(scratch / "file"));
  EXPECT_EQ(sync_to_disk(scratch / "none"), std::errc::no_such_file_or_directory);
  EXPECT_EQ(sync_to_disk("/dev/null"), std::errc::invalid_argument);
}

TEST(IsOwn, LooksAtTheNameItself) {
  const Scratch scratch;
  fs::create_symlink("none", scratch / "link");
  EXPECT_TRUE(is_own(scratch / "link"));
  EXPECT_FALSE(is_own(scratch / "none"));
  if (::geteuid() == 0) {
    std::ofstream(scratch / "none") << "x";
    ASSERT_EQ(::lchown((scratch / "link").c_str(), 65534, 65534), 0);
    EXPECT_TRUE(is_own(scratch / "none"));
  }
  EXPECT_EQ(is_own(scratch / "link"), ::geteuid() != 0);
}

TEST(Places, AreTheSameThroughLinksAndDots) {
  const test::Scratch scratch;
  fs::create_directories(scratch / "m/inner");
  fs::create_directory_symlink(scratch / "m", scratch / "b");
  std::ofstream(scratch / "m/file") << "x";
  fs::create_hard_link(scratch / "m/file", scratch / "other");
  EXPECT_TRUE(is_same_place(scratch / "m/file", scratch / "b/../b/file"));
  EXPECT_TRUE(is_same_place(scratch / "m/file", scratch / "other"));
  EXPECT_TRUE(is_same_place(scratch / "m/", scratch / "b"));
  EXPECT_FALSE(is_same_place(scratch / "m", scratch / "m/inner"));
  // Files that do not exist yet.
  EXPECT_TRUE(is_same_place(scratch / "m/new/x", scratch / "b/./new/x"));
  EXPECT_FALSE(is_same_place(scratch / "m/new/x", scratch / "b/new/y"));
  EXPECT_FALSE(is_same_place(scratch / "m/new", scratch / "m"));
}

TEST(Places, LieWithinAFolder) {
  const test::Scratch scratch;
  fs::create_directories(scratch / "m/inner");
  fs::create_directory(scratch / "mm");
  fs::create_directory_symlink(scratch / "m/inner", scratch / "b");
  EXPECT_TRUE(lies_within(scratch / "m", scratch / "m"));
  EXPECT_TRUE(lies_within(scratch / "m/inner/new/x", scratch / "m"));
  EXPECT_TRUE(lies_within(scratch / "b/new", scratch / "m"));
  EXPECT_FALSE(lies_within(scratch / "mm/x", scratch / "m"));
  EXPECT_FALSE(lies_within(scratch / "m/../x", scratch / "m"));
  EXPECT_FALSE(lies_within(scratch.folder(), scratch / "m"));
}

TEST(UnchangedFiles, NameWhatHappenedToAFile) {
  const test::Scratch scratch;
  const fs::path file = scratch / "f";
  const auto after = [&](const auto& change) {
    test::put(file, "abcd");
    UnchangedFiles noted;
    noted.note(file);
    noted.note(scratch / "missing");  // whoever opens it reports that
    noted.note(scratch.folder());
    noted.expect();
    change();
    return test::error_of(ErrorCode::Io, [&] { noted.expect(); });
  };
  const std::string since = " since it was opened";
  EXPECT_NE(after([&] { test::put(file, "abcde"); }).find("was changed" + since), std::string::npos);
  EXPECT_NE(after([&] {
              fs::last_write_time(file, fs::last_write_time(file) - std::chrono::nanoseconds(1000));
            }).find("was changed" + since),
            std::string::npos);
  EXPECT_NE(after([&] {
              test::put(scratch / "g", "abcd");
              fs::rename(scratch / "g", file);
            }).find("was replaced" + since),
            std::string::npos);
  EXPECT_NE(after([&] { fs::remove(file); }).find("was removed" + since), std::string::npos);
}

TEST(MappedFiles, ThatShrinkReadAsZerosAndFailTheCallThatMappedThem) {
  const test::Scratch scratch;
  constexpr std::size_t size = std::size_t{1} << 20;
  constexpr std::size_t kept = std::size_t{1} << 16;  // a multiple of any page
  const auto call = [&](const std::string& name, bool shrinks) {
    test::put(scratch / name, std::string(size, 'a'));
    const MappedFilesOfCall files;
    const MappedFile file(scratch / name);
    if (shrinks) fs::resize_file(scratch / name, kept);
    std::atomic<std::size_t> read = 0;
    std::vector<std::thread> readers;
    for (int i = 0; i < 4; ++i) {
      readers.emplace_back([&] {
        const auto bytes = file.bytes();
        read += static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), std::byte{'a'}));
      });
    }
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(read, 4 * (shrinks ? kept : size));
    if (shrinks) {
      const std::string said = error_of(ErrorCode::Io, [&] { files.expect_unchanged(); });
      EXPECT_NE(said.find(name + ": was changed since it was opened"), std::string::npos);
    } else {
      files.expect_unchanged();
    }
  };
  for (int i = 0; i < 3; ++i) {  // its entry is used again
    call("short", true);
    call("whole", false);
  }
}

TEST(MappedFilesDeathTest, OtherFaultsEndTheProcessAsBefore) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's own handler was there before";
#endif
  const test::Scratch scratch;
  test::put(scratch / "a", "abcd");
  const MappedFilesOfCall files;
  const MappedFile file(scratch / "a");
  EXPECT_EXIT(static_cast<void>(std::raise(SIGBUS)), testing::KilledBySignal(SIGBUS), "");
}

}  // namespace

}  // namespace normscope
