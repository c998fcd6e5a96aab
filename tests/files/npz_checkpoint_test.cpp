#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/source.hpp>

#include "files/zip_files.hpp"
#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::files {
namespace {

using namespace std::string_literals;

// arrays_*.npz are of numpy.savez and savez_compressed; arrays.safetensors has the same arrays, in row-major
// order.
std::filesystem::path fixture_file(const std::string& name) {
  return std::filesystem::path(NORMSCOPE_SOURCE_DIR) / "tests" / "files" / "fixtures" / name;
}

std::string fixture_bytes(const std::string& name) {
  std::ifstream file(fixture_file(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file in memory.
class MemoryFile : public files::Source {
 public:
  explicit MemoryFile(const std::string& bytes) : bytes_(bytes) {}
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] std::optional<std::span<const std::byte>> memory() const override {
    return test::as_bytes(bytes_);
  }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  std::string bytes_;
};

/// Expects the tensors of `expected`, bit for bit, also where parts of them are read.
void expect_same_tensors(const Checkpoint& found, const Checkpoint& expected) {
  ASSERT_EQ(found.tensors().size(), expected.tensors().size());
  for (std::size_t i = 0; i < expected.tensors().size(); ++i) {
    const Tensor& tensor = found.tensors()[i];
    const Tensor& same = expected.tensors()[i];
    ASSERT_EQ(tensor.name, same.name);
    SCOPED_TRACE(std::string(tensor.name));
    EXPECT_EQ(to_string(tensor.dtype), to_string(same.dtype));
    EXPECT_EQ(std::vector<std::uint64_t>(tensor.shape.begin(), tensor.shape.end()),
              std::vector<std::uint64_t>(same.shape.begin(), same.shape.end()));
    EXPECT_TRUE(files::equal(tensor.bytes, same.bytes));
    EXPECT_EQ(read(tensor), read(same));
    for (std::uint64_t begin = 0; begin < tensor.elements(); begin += 5) {
      const std::uint64_t count = std::min<std::uint64_t>(7, tensor.elements() - begin);
      EXPECT_EQ(read(tensor, begin, count), read(same, begin, count)) << begin;
    }
  }
}

class NpzFixtures : public testing::TestWithParam<const char*> {};

TEST_P(NpzFixtures, HoldWhatNumpyWrote) {
  const Checkpoint checkpoint(fixture_file(GetParam()));
  EXPECT_EQ(checkpoint.format(), "npz");
  expect_same_tensors(checkpoint, Checkpoint(fixture_file("arrays.safetensors")));
}

TEST_P(NpzFixtures, RefuseEveryTruncation) {
  const std::string good = fixture_bytes(GetParam());
  for (std::size_t size = 4; size < good.size(); ++size) {
    test::error_of(ErrorCode::Format, [&] {
      (void)Checkpoint("m.npz",
                       [&](const auto&) { return std::make_unique<MemoryFile>(good.substr(0, size)); });
    });
  }
}
INSTANTIATE_TEST_SUITE_P(Npz, NpzFixtures, testing::Values("arrays_stored.npz", "arrays_deflated.npz"));

TEST(NpzCheckpoint, RefusesDamageOfCompressedElementsWhenTheyAreRead) {
  std::string bytes = fixture_bytes("arrays_deflated.npz");
  const std::size_t at = bytes.find("fortran.npy") + 200;
  bytes[at] = static_cast<char>(bytes[at] ^ 0x55);
  const Checkpoint checkpoint("m.npz", [&](const auto&) { return std::make_unique<MemoryFile>(bytes); });
  EXPECT_NE(test::error_of(ErrorCode::Format, [&] { (void)read(*checkpoint.find("fortran")); })
                .find("\"fortran.npy\""),
            std::string::npos);
  EXPECT_EQ(read(*checkpoint.find("c")).size(), 35u);
}

TEST(NpzCheckpoint, ReadsSingleBytesThatAreSaidToBeBigEndian) {
  const std::string array =
      "\x93NUMPY\1\0\x3b\0{'descr': '>u1', 'fortran_order': False, 'shape': (2,), } \n\1\2"s;
  const std::string file = test::zip({test::ZipEntry(array, "a.npy")});
  const Checkpoint checkpoint("m.npz", [&](const auto&) { return std::make_unique<MemoryFile>(file); });
  EXPECT_EQ(read(*checkpoint.find("a")), (std::vector<double>{1, 2}));
}

TEST(NpzCheckpoint, HasNoMembersThatAreStateDicts) {
  const test::Scratch scratch;
  test::put(scratch / "m.npz", fixture_bytes("arrays_stored.npz"));
  const std::string path = (scratch / "m.npz").string();
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { const Checkpoint checkpoint(path + ":model"); }),
            "checkpoint: " + path +
                ": is NumPy array, expected a PyTorch file, whose members have names; found \"model\"");
}

}  // namespace
}  // namespace normscope::files
