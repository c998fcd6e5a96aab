#include <cstddef>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/random.hpp>
#include <normscope/files/array.hpp>

#include "files/zip_files.hpp"
#include "support/data.hpp"
#include "support/files.hpp"

namespace normscope::files {
namespace {

using namespace std::string_literals;
using test::gzip;

Array read(const std::string& bytes) { return read_idx(std::as_bytes(std::span(bytes)), "idx: x"); }

Array read_mapped(const std::filesystem::path& path) {
  return read(open_idx(MappedFile(path), "idx: " + path.string()));
}

const std::string bytes_2x3 = "\0\0\x08\x02\0\0\0\x02\0\0\0\x03\x01\x02\x03\x04\x05\xff"s;

TEST(Idx, ReadsPlainAndPacked) {
  for (const std::string& bytes : {bytes_2x3, gzip(bytes_2x3)}) {
    const Array array = read(bytes);
    EXPECT_EQ(array.shape, (std::vector<std::uint64_t>{2, 3}));
    EXPECT_EQ(array.values, (std::vector<double>{1, 2, 3, 4, 5, 255}));
    EXPECT_EQ(array.dtype, Dtype::U8);
  }
  EXPECT_EQ(read("\0\0\x0b\x01\0\0\0\x02\xff\xfe\x01\0"s).values, (std::vector<double>{-2, 256}));
  EXPECT_EQ(read("\0\0\x0d\x01\0\0\0\x01\x3f\x80\0\0"s).values, (std::vector<double>{1}));
}

TEST(Idx, RefusesIncompleteFiles) {
  const std::string packed = gzip(bytes_2x3);
  for (std::size_t size = 0; size < bytes_2x3.size(); ++size) {
    EXPECT_THROW(static_cast<void>(read(bytes_2x3.substr(0, size))), Error) << size;
  }
  for (std::size_t size = 0; size < packed.size(); ++size) {
    EXPECT_THROW(static_cast<void>(read(packed.substr(0, size))), Error) << size;
  }
  EXPECT_THROW(static_cast<void>(read(bytes_2x3 + "x")), Error);
  EXPECT_THROW(static_cast<void>(read(packed + "x")), Error);
  EXPECT_THROW(static_cast<void>(read(gzip(bytes_2x3 + "x"))), Error);
  EXPECT_THROW(static_cast<void>(read("\0\0\x07\x01\0\0\0\0"s)), Error);
  EXPECT_THROW(static_cast<void>(read("\0\0\x08\0"s)), Error);
  // Sizes that overflow, and ones that no such file can hold.
  EXPECT_THROW(static_cast<void>(read("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s)),
               Error);
  EXPECT_THROW(static_cast<void>(read(gzip("\0\0\x0e\x01\x7f\xff\xff\xff"s))), Error);
}

TEST(Idx, UnpacksNoMoreThanTheStatedBound) {
  // What could unpack to 300 million zeros, as its header says.
  std::string noise(400'000, '\0');
  Random random(1);
  for (char& c : noise) c = static_cast<char>(random.bits());
  const std::string packed = gzip("\0\0\x08\x01\x11\xe1\xa3\x00"s + noise);
  EXPECT_EQ(test::error_of(ErrorCode::Unsupported, [&] { (void)read(packed); }),
            "idx: x: has more than the 268435456 bytes that are unpacked from " +
                std::to_string(packed.size()) + "; unpack it first");
  const std::string small = gzip("\0\0\x08\x01\x11\xe1\xa3\x00"s);
  EXPECT_EQ(test::error_of(ErrorCode::Format, [&] { (void)read(small); }),
            "idx: x: has fewer bytes than the elements that its header states");
}

TEST(Idx, UnpacksAConstantArray) {
  const Array zeros = read(gzip("\0\0\x08\x01\x01\x00\x00\x00"s + std::string(1 << 24, '\0')));
  EXPECT_EQ(zeros.shape, std::vector<std::uint64_t>{1 << 24});
}

TEST(Idx, ReadsMnist) {
  NORMSCOPE_NEED_DATA(folder, "mnist");
  const Array images = read_mapped(folder / "t10k-images-idx3-ubyte.gz");
  EXPECT_EQ(images.shape, (std::vector<std::uint64_t>{10000, 28, 28}));
  const Array labels = read_mapped(folder / "t10k-labels-idx1-ubyte.gz");
  EXPECT_EQ(std::vector(labels.values.begin(), labels.values.begin() + 5),
            (std::vector<double>{7, 2, 1, 0, 4}));
}

}  // namespace
}  // namespace normscope::files
