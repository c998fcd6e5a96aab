#include <normscope/core/snapshot.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>

#include "support/scratch.hpp"

namespace normscope {
namespace {

using Bytes = std::vector<std::byte>;

constexpr SnapshotKind kind{
    .name = "test", .version = 3, .others = "other inputs", .former = "normscope.old/"};

Bytes bytes_of(const std::string& text) {
  const std::span<const std::byte> view = std::as_bytes(std::span(text));
  return {view.begin(), view.end()};
}

const Digest inputs = sha256(bytes_of("inputs"));

/// The error message of reading; empty if it succeeds.
std::string refusal(const Bytes& snapshot, const SnapshotKind& as = kind, const Digest& of = inputs,
                    ErrorCode code = ErrorCode::Format) {
  try {
    static_cast<void>(read_snapshot(snapshot, as, of, "file"));
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
}

RC_GTEST_PROP(Snapshot, GivesBackWhatWasPut, (const std::string& text)) {
  RC_ASSERT(read_snapshot(write_snapshot(kind, inputs, bytes_of(text)), kind, inputs, "file") ==
            bytes_of(text));
}

TEST(Snapshot, NoticesEveryChangedByte) {
  const Bytes whole = write_snapshot(kind, inputs, bytes_of("what a run has reached"));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const unsigned flip : {1U, 0x80U, 0xffU}) {
      Bytes changed = whole;
      changed[i] ^= static_cast<std::byte>(flip);
      EXPECT_NE(refusal(changed), "") << i;
    }
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))), "") << size;
  }
  Bytes longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_EQ(refusal(longer), "file: is damaged: not the bytes that test saved; delete it to start again");
}

TEST(Snapshot, ReportsErrors) {
  const Bytes whole = write_snapshot(kind, inputs, bytes_of("x"));
  EXPECT_EQ(refusal(bytes_of("something else")), "file: is not a state that test saved");
  EXPECT_EQ(refusal(bytes_of("normscope.old/2 and so on")),
            "file: is a state that an earlier version of test saved; delete it to start again");
  // Its signature is looked for in the beginning alone.
  EXPECT_EQ(refusal(bytes_of(std::string(5000, ' ') + "normscope.old/2")),
            "file: is not a state that test saved");
  SnapshotKind other = kind;
  other.former = {};
  EXPECT_EQ(refusal(bytes_of("normscope.old/2 and so on"), other), "file: is not a state that test saved");
  other = kind;
  other.name = "toast";
  EXPECT_EQ(refusal(whole, other), "file: is not a state that toast saved");
  other = kind;
  other.version = 4;
  EXPECT_EQ(refusal(whole, other),
            "file: is a state that test saved in layout 3, expected 4; delete it to start again");
  EXPECT_EQ(refusal(whole, kind, sha256({}), ErrorCode::Argument),
            "file: is a state that test saved for other inputs, expected the same ones");
}

TEST(Snapshot, IsAFileThatAppearsWhole) {
  const test::Scratch scratch;
  const std::filesystem::path path = scratch / "snapshot";
  save_snapshot(path, kind, inputs, bytes_of("first"));
  save_snapshot(path, kind, inputs, bytes_of("second"));
  EXPECT_EQ(load_snapshot(path, kind, inputs), bytes_of("second"));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_THROW(static_cast<void>(load_snapshot(path, kind, inputs)), Error);
  std::filesystem::remove(path);
  EXPECT_THROW(static_cast<void>(load_snapshot(path, kind, inputs)), Error);
}

}  // namespace
}  // namespace normscope
