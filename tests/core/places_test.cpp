#include <normscope/core/file.hpp>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "support/scratch.hpp"

namespace normscope {
namespace {

namespace fs = std::filesystem;

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

}  // namespace
}  // namespace normscope
