#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

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

TEST(SpelledOut, IsAbsoluteAndWithoutDots) {
  EXPECT_EQ(spelled_out("/a/./b/../c"), "/a/c");
  EXPECT_EQ(spelled_out("a/../b"), fs::current_path() / "b");
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
}

}  // namespace
}  // namespace normscope
