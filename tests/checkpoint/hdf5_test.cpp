#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>

#include "checkpoint/fixture_files.hpp"
#include "checkpoint/hdf5_files.hpp"

namespace normscope::checkpoint {
namespace {

using test::fixture_bytes;
using test::fixture_file;
using test::hdf5_complaint;
using test::read_hdf5;

void read_or_refuse(const std::string& bytes) {
  try {
    read_hdf5(bytes);
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

template <typename Number>
void patch(std::string& bytes, std::size_t at, Number value) {
  ASSERT_LE(at + sizeof value, bytes.size());
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

template <typename Number>
Number number_at(const std::string& bytes, std::size_t at) {
  Number value{};
  if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::size_t nth(const std::string& bytes, const std::string& magic, int which = 0) {
  std::size_t at = bytes.find(magic);
  for (; which > 0; --which) at = bytes.find(magic, at + 1);
  return at;
}

class Hdf5Fixtures : public testing::TestWithParam<const char*> {};

TEST_P(Hdf5Fixtures, HoldWhatH5pyReads) {
  const std::string name = std::string("hdf5_") + GetParam();
  const Checkpoint checkpoint(fixture_file(name + ".h5"));
  EXPECT_EQ(checkpoint.format(), "hdf5");
  test::expect_same_tensors(checkpoint, Checkpoint(fixture_file(name + ".safetensors")));
}
INSTANTIATE_TEST_SUITE_P(Hdf5, Hdf5Fixtures, testing::Values("plain", "latest"));

TEST(Hdf5, RefusesEveryTruncation) {
  for (const char* name : {"hdf5_plain.h5", "hdf5_latest.h5"}) {
    const std::string whole = fixture_bytes(name);
    const std::size_t end_at = name == std::string("hdf5_plain.h5") ? 40 : 28;
    ASSERT_EQ(number_at<std::uint64_t>(whole, end_at), whole.size());
    for (std::size_t size = 9; size < whole.size(); size += 1 + size / 512) {
      std::string part = whole.substr(0, size);
      EXPECT_NE(hdf5_complaint(ErrorCode::Format, part), "") << size;
      if (size < end_at + 8 || size % 2 != 0) continue;
      // The superblock is consistent, so that the structures behind it are tested.
      patch(part, end_at, std::uint64_t{size});
      read_or_refuse(part);
    }
  }
}

TEST(Hdf5, RefusesOverlapsAndCircles) {
  const std::string good = fixture_bytes("hdf5_plain.h5");
  const std::uint64_t root = number_at<std::uint64_t>(good, 64);
  // An entry of a list of links that leads to the root.
  std::string bytes = good;
  patch(bytes, nth(good, "SNOD") + 8 + 8, root);
  EXPECT_NE(hdf5_complaint(ErrorCode::Unsupported, bytes).find("second name of an object"),
            std::string::npos);
  // A tree that is its own child, of a level that does not change.
  bytes = good;
  const std::size_t tree = nth(good, std::string("TREE\0", 5));
  patch(bytes, tree + 5, std::uint8_t{1});
  patch(bytes, tree + 32, std::uint64_t{tree});
  EXPECT_NE(hdf5_complaint(ErrorCode::Format, bytes).find("tree of links at byte"), std::string::npos);
  // A tree of many children, all the same.
  bytes = good;
  patch(bytes, tree + 6, std::uint16_t{65535});
  EXPECT_NE(hdf5_complaint(ErrorCode::Format, bytes), "");
}

TEST(Hdf5, RefusesChunksThatAreNotSound) {
  const std::string good = fixture_bytes("hdf5_plain.h5");
  const std::size_t tree = nth(good, std::string("TREE\1\0", 6));
  ASSERT_NE(tree, std::string::npos);
  const std::size_t key = tree + 24;
  const std::uint64_t size_of_key = 8 + 8 * 3;  // of "chunks/plain", a matrix
  std::string bytes = good;
  patch(bytes, key, std::uint32_t{0xffffffff});
  EXPECT_NE(hdf5_complaint(ErrorCode::Format, bytes).find("is stored in"), std::string::npos);
  bytes = good;
  patch(bytes, key + 8, std::uint64_t{1});
  EXPECT_NE(hdf5_complaint(ErrorCode::Format, bytes).find("which is no multiple of"), std::string::npos);
  bytes = good;
  patch(bytes, tree + 6, static_cast<std::uint16_t>(number_at<std::uint16_t>(good, tree + 6) - 1));
  EXPECT_NE(hdf5_complaint(ErrorCode::Unsupported, bytes).find("chunks, expected all"), std::string::npos);
  bytes = good;
  std::memcpy(bytes.data() + key + size_of_key + 8, good.data() + key, size_of_key);
  EXPECT_NE(hdf5_complaint(ErrorCode::Format, bytes).find("has a chunk twice"), std::string::npos);
  bytes = good;
  std::memcpy(bytes.data() + key + 2 * size_of_key + 8, good.data() + key + size_of_key, 8);
  EXPECT_NE(hdf5_complaint(ErrorCode::Format, bytes).find("overlap"), std::string::npos);
  // Elements that are not a deflate stream.
  bytes = good;
  const std::size_t zlib = nth(good, std::string("\x78\x5e", 2));
  ASSERT_NE(zlib, std::string::npos);
  bytes[zlib + 8] = static_cast<char>(bytes[zlib + 8] ^ 0x55);
  EXPECT_NE(hdf5_complaint(ErrorCode::Format, bytes).find("compressed bytes do not decompress to"),
            std::string::npos);
}

TEST(Hdf5, RefusesOtherVersionsByName) {
  std::string bytes = fixture_bytes("hdf5_plain.h5");
  patch(bytes, 8, std::uint8_t{4});
  EXPECT_EQ(hdf5_complaint(ErrorCode::Unsupported, bytes), "has a superblock of version 4, expected 0 to 3");
  patch(bytes, 8, std::uint8_t{0});
  patch(bytes, 13, std::uint8_t{4});
  EXPECT_EQ(hdf5_complaint(ErrorCode::Unsupported, bytes),
            "has addresses of 4 and lengths of 8 bytes, expected 8");
}

TEST(Hdf5, SurvivesAnyChangeOfOneByte) {
  const std::string good = fixture_bytes("hdf5_latest.h5");
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(~bytes[at]);
    read_or_refuse(bytes);
  }
}

}  // namespace
}  // namespace normscope::checkpoint
