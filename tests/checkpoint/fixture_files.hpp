#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/bytes/source.hpp>
#include <normscope/checkpoint/checkpoint.hpp>

#include "support/files.hpp"

namespace normscope::test {

inline std::filesystem::path fixture_file(const std::string& name) {
  return std::filesystem::path(NORMSCOPE_SOURCE_DIR) / "tests" / "checkpoint" / "fixtures" / name;
}

inline std::string fixture_bytes(const std::string& name) {
  std::ifstream file(fixture_file(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A file in memory.
class MemoryFile : public bytes::Source {
 public:
  explicit MemoryFile(const std::string& bytes) : bytes_(bytes) {}
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] std::optional<std::span<const std::byte>> memory() const override { return as_bytes(bytes_); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  std::string bytes_;
};

/// Expects the tensors of `expected`, bit for bit, also where parts of them are read.
inline void expect_same_tensors(const checkpoint::Checkpoint& found, const checkpoint::Checkpoint& expected) {
  ASSERT_EQ(found.tensors().size(), expected.tensors().size());
  for (std::size_t i = 0; i < expected.tensors().size(); ++i) {
    const checkpoint::Tensor& tensor = found.tensors()[i];
    const checkpoint::Tensor& same = expected.tensors()[i];
    ASSERT_EQ(tensor.name, same.name);
    SCOPED_TRACE(std::string(tensor.name));
    // h5py stores booleans as an enumeration of bytes.
    const Dtype dtype = same.dtype == Dtype::BOOL && found.format() == "hdf5" ? Dtype::I8 : same.dtype;
    EXPECT_EQ(to_string(tensor.dtype), to_string(dtype));
    EXPECT_EQ(std::vector<std::uint64_t>(tensor.shape.begin(), tensor.shape.end()),
              std::vector<std::uint64_t>(same.shape.begin(), same.shape.end()));
    EXPECT_TRUE(bytes::equal(tensor.bytes, same.bytes));
    EXPECT_EQ(read(tensor), read(same));
    for (std::uint64_t begin = 0; begin < tensor.elements(); begin += 5) {
      const std::uint64_t count = std::min<std::uint64_t>(7, tensor.elements() - begin);
      EXPECT_EQ(read(tensor, begin, count), read(same, begin, count)) << begin;
    }
  }
}

}  // namespace normscope::test
