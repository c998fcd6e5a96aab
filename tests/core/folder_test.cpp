#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <normscope/core/file.hpp>

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

}  // namespace
}  // namespace normscope
