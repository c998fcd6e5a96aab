#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include <gtest/gtest.h>

#include <normscope/core/folder.hpp>

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
}

TEST(IsOwn, LooksAtTheNameItself) {
  const Scratch scratch;
  fs::create_symlink("none", scratch / "link");
  EXPECT_TRUE(is_own(scratch / "link"));
  EXPECT_FALSE(is_own(scratch / "none"));
}

}  // namespace
}  // namespace normscope
