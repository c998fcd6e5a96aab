#include <normscope/core/file.hpp>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope {
namespace {

namespace fs = std::filesystem;

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

TEST(MappedFiles, AreKnownByTheirAddresses) {
  const test::Scratch scratch;
  test::put(scratch / "f\x1b", "abcd");
  const std::byte* inside = nullptr;
  {
    const MappedFile file(scratch / "f\x1b");
    inside = file.bytes().data() + 3;
    EXPECT_TRUE(mapped_file_at(inside).ends_with("f\\x1b"));
    EXPECT_TRUE(mapped_file_at(file.bytes().data() + 4).empty());
  }
  EXPECT_TRUE(mapped_file_at(inside).empty());
  EXPECT_TRUE(mapped_file_at(nullptr).empty());
}

}  // namespace
}  // namespace normscope
