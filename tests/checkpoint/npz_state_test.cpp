#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>

#include "bytes/zip_files.hpp"
#include "checkpoint/fixture_files.hpp"
#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::checkpoint {
namespace {

using namespace std::string_literals;

class NpzFixtures : public testing::TestWithParam<const char*> {};

TEST_P(NpzFixtures, HoldWhatNumpyWrote) {
  const Checkpoint checkpoint(test::fixture_file(GetParam()));
  EXPECT_EQ(checkpoint.format(), "npz");
  test::expect_same_tensors(checkpoint, Checkpoint(test::fixture_file("arrays.safetensors")));
}

TEST_P(NpzFixtures, RefuseEveryTruncation) {
  const std::string good = test::fixture_bytes(GetParam());
  for (std::size_t size = 4; size < good.size(); ++size) {
    test::error_of(ErrorCode::Format, [&] {
      (void)Checkpoint("m.npz",
                       [&](const auto&) { return std::make_unique<test::MemoryFile>(good.substr(0, size)); });
    });
  }
}
INSTANTIATE_TEST_SUITE_P(Npz, NpzFixtures, testing::Values("arrays_stored.npz", "arrays_deflated.npz"));

TEST(Npz, RefusesDamageOfCompressedElementsWhenTheyAreRead) {
  std::string bytes = test::fixture_bytes("arrays_deflated.npz");
  const std::size_t at = bytes.find("fortran.npy") + 200;
  bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
  const Checkpoint checkpoint("m.npz",
                              [&](const auto&) { return std::make_unique<test::MemoryFile>(bytes); });
  EXPECT_NE(test::error_of(ErrorCode::Format, [&] { (void)read(*checkpoint.find("fortran")); })
                .find("\"fortran.npy\""),
            std::string::npos);
  EXPECT_EQ(read(*checkpoint.find("c")).size(), 35u);
}

TEST(Npz, ReadsSingleBytesThatAreSaidToBeBigEndian) {
  const std::string array =
      "\x93NUMPY\1\0\x3b\0{'descr': '>u1', 'fortran_order': False, 'shape': (2,), } \n\1\2"s;
  const std::string file = test::zip({test::ZipEntry(array, "a.npy")});
  const Checkpoint checkpoint("m.npz", [&](const auto&) { return std::make_unique<test::MemoryFile>(file); });
  EXPECT_EQ(read(*checkpoint.find("a")), (std::vector<double>{1, 2}));
}

TEST(Npz, HasNoMembersThatAreStateDicts) {
  const test::Scratch scratch;
  test::put(scratch / "m.npz", test::fixture_bytes("arrays_stored.npz"));
  const std::string path = (scratch / "m.npz").string();
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { const Checkpoint checkpoint(path + ":model"); }),
            "checkpoint: " + path +
                ": is NumPy array, expected a PyTorch file, whose members have names; found \"model\"");
}

}  // namespace
}  // namespace normscope::checkpoint
