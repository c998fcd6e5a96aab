#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>

#include "support/scratch.hpp"

namespace normscope {
namespace {

namespace fs = std::filesystem;
using test::Scratch;

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Io);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
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
  EXPECT_NE(refusal(reads).find("ends early"), std::string::npos);
  EXPECT_NE(refusal([&] { RangedFile folder(scratch.folder()); }).find("is a folder"), std::string::npos);
  EXPECT_NE(refusal([&] { RangedFile none(scratch / "none"); }).find("cannot be opened"), std::string::npos);
}

TEST(SpelledOut, IsAbsoluteAndWithoutDots) {
  EXPECT_EQ(spelled_out("/a/./b/../c"), "/a/c");
  EXPECT_EQ(spelled_out("a/../b"), fs::current_path() / "b");
}

TEST(AtomicFile, NamesThatCannotBeWrittenAreRefused) {
  const Scratch scratch;
  EXPECT_NE(refusal([] { AtomicFile file(""); }).find("has no name"), std::string::npos);
  fs::create_symlink("b", scratch / "a");
  fs::create_symlink("a", scratch / "b");
  EXPECT_NE(refusal([&] { AtomicFile file(scratch / "a"); }).find("Too many levels of symbolic links"),
            std::string::npos);
  EXPECT_FALSE(refusal([&] { AtomicFile file(scratch / "none/file"); }).empty());
}

}  // namespace
}  // namespace normscope
