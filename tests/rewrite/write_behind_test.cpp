#include "../../src/rewrite/output_files.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace normscope::rewrite {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

/// Text in which every position is distinguishable.
std::string long_text(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i * i % 23);
  return text;
}

TEST(WriteBehind, PiecesOfAllSizesArriveInTheirOrder) {
  const std::string text = long_text(5'000'000);
  std::string written;
  WriteBehind behind([&](std::span<const std::byte> bytes) {
    written.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  const std::span<const std::byte> all = bytes_of(text);
  for (std::size_t at = 0, size = 1; at < all.size(); at += size, size = size * 7 % 1'500'000 + 1) {
    behind.push(all.subspan(at, std::min(size, all.size() - at)));
  }
  behind.finish();
  EXPECT_TRUE(written == text);
}

TEST(WriteBehind, ErrorsComeBack) {
  WriteBehind behind([](std::span<const std::byte>) { throw std::runtime_error("disk full"); });
  const std::string piece(2'000'000, 'x');
  EXPECT_THROW(
      {
        for (int i = 0; i < 3; ++i) behind.push(bytes_of(piece));
        behind.finish();
      },
      std::runtime_error);
}

TEST(WriteBehind, AnErrorOfTheLastPieceComesBack) {
  WriteBehind behind([](std::span<const std::byte>) { throw std::runtime_error("disk full"); });
  behind.push(bytes_of("short"));
  EXPECT_THROW(behind.finish(), std::runtime_error);
}

TEST(WriteBehind, UnwrittenBytesMayBeDropped) {
  std::size_t written = 0;
  {
    WriteBehind behind([&](std::span<const std::byte> bytes) { written += bytes.size(); });
    behind.push(bytes_of("short"));
  }
  EXPECT_EQ(written, 0U);
}

TEST(Fingerprint, DoesNotDependOnThePieces) {
  const std::string text = long_text(1000);
  Fingerprint whole;
  whole.add(bytes_of(text));
  for (std::size_t size = 1; size < 80; ++size) {
    Fingerprint pieces;
    for (std::size_t at = 0; at < text.size(); at += size)
      pieces.add(bytes_of(text).subspan(at).first(std::min(size, text.size() - at)));
    ASSERT_EQ(pieces.value(), whole.value()) << size;
  }
}

TEST(Fingerprint, NoticesEveryByteAndTheLength) {
  std::string text = long_text(100);
  Fingerprint before;
  before.add(bytes_of(text));
  for (char& letter : text) {
    letter ^= 1;
    Fingerprint changed;
    changed.add(bytes_of(text));
    EXPECT_NE(changed.value(), before.value());
    letter ^= 1;
  }
  Fingerprint longer;
  longer.add(bytes_of(text + std::string(1, '\0')));
  EXPECT_NE(longer.value(), before.value());
}

}  // namespace
}  // namespace normscope::rewrite
