#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>

#include "checkpoint/fixture_files.hpp"
#include "support/files.hpp"

namespace normscope::checkpoint {
namespace {

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

}  // namespace
}  // namespace normscope::checkpoint
