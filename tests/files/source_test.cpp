#include <normscope/files/source.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>

#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::files {
namespace {

namespace fs = std::filesystem;
using test::as_bytes;
using test::put;
using test::Scratch;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

std::string random_text(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 1;
  for (char& c : text) c = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
  return text;
}

std::string text_of(const Source& source, std::uint64_t offset, std::size_t size) {
  std::string text(size, '\0');
  source.read(offset, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

TEST(Source, ReadsAnyRangeOfAFile) {
  const Scratch scratch;
  const std::string text = random_text(3 * mebibyte + 17);
  put(scratch / "f", text);
  const std::unique_ptr<Source> mapped = map_file(scratch / "f");
  const std::unique_ptr<Source> ranged = read_file(scratch / "f");
  EXPECT_EQ(mapped->memory()->size(), text.size());
  EXPECT_FALSE(ranged->memory());
  EXPECT_EQ(ranged->size(), text.size());
  EXPECT_EQ(text_of(*ranged, 0, text.size()), text);
  EXPECT_TRUE(rc::check("mapped or ranged, the bytes are the file's", [&] {
    const auto begin = *rc::gen::inRange<std::size_t>(0, text.size() + 1);
    const auto size = *rc::gen::oneOf(
        rc::gen::inRange<std::size_t>(0, text.size() + 1 - begin),
        rc::gen::inRange<std::size_t>(0, std::min<std::size_t>(100, text.size() + 1 - begin)));
    RC_ASSERT(text_of(*mapped, begin, size) == text.substr(begin, size));
    RC_ASSERT(text_of(*ranged, begin, size) == text.substr(begin, size));
  }));
}

TEST(Source, KeepsAFewBlocksOfAFileOnly) {
  const Scratch scratch;
  put(scratch / "f", "");
  fs::resize_file(scratch / "f", 200 * mebibyte + 1);
  const std::unique_ptr<Source> source = read_file(scratch / "f");
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t at = 0; at <= 200 * mebibyte; at += mebibyte / 2)
      EXPECT_EQ(text_of(*source, at, 1)[0], 0);
  }
}

TEST(Source, TellsWhetherBytesAreEqual) {
  const std::string text = random_text(2 * mebibyte + 5);
  std::string other = text;
  EXPECT_TRUE(equal(as_bytes(text), as_bytes(other)));
  EXPECT_FALSE(equal(as_bytes(text), as_bytes(other).first(text.size() - 1)));
  other.back() ^= 1;
  EXPECT_FALSE(equal(as_bytes(text), as_bytes(other)));
  EXPECT_TRUE(equal(as_bytes(""), as_bytes("")));
}

TEST(Source, NamesAFileThatShrinks) {
  const Scratch scratch;
  put(scratch / "f", std::string(3000, 'x'));
  const std::unique_ptr<Source> source = read_file(scratch / "f");
  fs::resize_file(scratch / "f", 10);
  EXPECT_EQ(test::error_of(ErrorCode::Io, [&] { (void)text_of(*source, 2000, 10); }),
            "file: " + (scratch / "f").string() + ": ends early: it was changed while it was read");
  EXPECT_NE(
      test::error_of(ErrorCode::Io, [&] { (void)read_file(scratch / "none"); }).find("cannot be opened"),
      std::string::npos);
}

}  // namespace
}  // namespace normscope::files
