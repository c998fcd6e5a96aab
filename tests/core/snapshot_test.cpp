#include <normscope/core/snapshot.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

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

RC_GTEST_PROP(Packed, GivesBackWhatWasPut,
              (const std::vector<double>& values, std::uint32_t word, bool flag)) {
  Packer packer;
  packer.put(values);
  packer.put(word);
  packer.put(flag);
  Unpacker unpacker(packer.bytes());
  std::vector<double> values_back{1.0};
  std::uint32_t word_back = 0;
  bool flag_back = !flag;
  unpacker.get(values_back);
  unpacker.get(word_back);
  unpacker.get(flag_back);
  unpacker.finish();
  RC_ASSERT(values_back == values);
  RC_ASSERT(word_back == word);
  RC_ASSERT(flag_back == flag);
}

TEST(Packed, RandomNumbersGoOn) {
  Random random(3);
  static_cast<void>(random.normal());
  Packer packer;
  packer.put(random);
  Random later(4);
  Unpacker(packer.bytes()).get(later);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(later.normal(), random.normal());
}

RC_GTEST_PROP(Packed, NoticesWhatIsMissingOrLeft,
              (const std::vector<std::uint16_t>& values, std::uint8_t cut)) {
  Packer packer;
  packer.put(values);
  const std::span<const std::byte> bytes = packer.bytes();
  std::vector<std::uint16_t> back;
  Unpacker shorter(bytes.first(bytes.size() - 1 - cut % bytes.size()));
  RC_ASSERT_THROWS_AS(shorter.get(back), Error);
  RC_ASSERT_THROWS_AS(Unpacker(bytes).finish(), Error);
}

TEST(Packed, ALengthBeyondTheBytesAllocatesNothing) {
  Packer packer;
  packer.put(~std::size_t{0});
  std::vector<double> values;
  EXPECT_THROW(Unpacker(packer.bytes()).get(values), Error);
}

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

TEST(Sha256, MatchesTheStandardsExamples) {
  EXPECT_EQ(to_hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256(bytes("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(to_hex(sha256(bytes(std::string(1'000'000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

RC_GTEST_PROP(Sha256, DoesNotDependOnThePieces, (const std::vector<std::string>& pieces)) {
  std::string whole;
  Sha256 hash;
  for (const std::string& piece : pieces) {
    whole += piece;
    hash.update(bytes(piece));
  }
  RC_ASSERT(hash.finish() == sha256(bytes(whole)));
}

TEST(Sha256, EveryLengthIsPadded) {
  std::vector<std::string> seen;
  for (std::size_t length = 0; length < 200; ++length) {
    const std::string text(length, 'x');
    Sha256 hash;
    for (const char& letter : text) hash.update(bytes(std::string(1, letter)));
    ASSERT_EQ(hash.finish(), sha256(bytes(text))) << length;
    seen.push_back(to_hex(sha256(bytes(text))));
  }
  // hashlib.sha256(b"x" * 55).hexdigest(), and of 56 and 64.
  EXPECT_EQ(seen[55], "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  EXPECT_EQ(seen[56], "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  EXPECT_EQ(seen[64], "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
}

TEST(Sha256, PiecesAreHashedOnAnyNumberOfThreads) {
  const std::string text(2 * sha256_piece + 3, 'y');
  const Digest parts[] = {sha256(bytes(text.substr(0, sha256_piece))),
                          sha256(bytes(text.substr(0, sha256_piece))), sha256(bytes("yyy"))};
  for (const unsigned threads : {1U, 2U, 5U}) {
    EXPECT_EQ(piecewise_sha256(bytes(text), threads), sha256(std::as_bytes(std::span(parts))));
  }
  EXPECT_EQ(piecewise_sha256({}), sha256({}));
}

}  // namespace

}  // namespace normscope
