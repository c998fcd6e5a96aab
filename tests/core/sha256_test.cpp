#include <normscope/core/snapshot.hpp>

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace normscope {
namespace {

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
