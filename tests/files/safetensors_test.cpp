#include <normscope/files/safetensors.hpp>

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>

#include "files/test_files.hpp"

namespace normscope::files {
namespace {

using test::as_bytes;
using test::safetensors_file;

TEST(Safetensors, ReadsTensorsSortedByName) {
  const std::string file = safetensors_file(
      R"({"b":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"a":{"dtype":"U8","shape":[],"data_offsets":[8,9]}})",
      "01234567X");
  const SafetensorsContents contents = parse_safetensors(as_bytes(file), "f");
  ASSERT_EQ(contents.tensors.size(), 2u);
  const Tensor& a = contents.tensors[0];
  const Tensor& b = contents.tensors[1];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.dtype, Dtype::U8);
  EXPECT_TRUE(a.shape.empty());
  EXPECT_EQ(a.elements(), 1u);
  EXPECT_EQ(a.bytes.memory()[0], std::byte{'X'});
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(std::vector<std::uint64_t>(b.shape.begin(), b.shape.end()), (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(b.bytes.size(), 8u);
}

TEST(Safetensors, PointsIntoTheBytesItWasGiven) {
  const std::string file = test::one_tensor_file("name");
  const SafetensorsContents contents = parse_safetensors(as_bytes(file), "f");
  const auto inside = [&file](const void* address) {
    return address >= static_cast<const void*>(file.data()) &&
           address < static_cast<const void*>(file.data() + file.size());
  };
  EXPECT_TRUE(inside(contents.tensors[0].name.data()));
  EXPECT_TRUE(inside(contents.tensors[0].bytes.memory().data()));
}

TEST(Safetensors, AcceptsAnEmptyObject) {
  EXPECT_TRUE(parse_safetensors(as_bytes(safetensors_file("{}")), "f").tensors.empty());
}

TEST(Safetensors, AcceptsSpacesBehindAndBlanksWithin) {
  const std::string file = safetensors_file(
      "{ \"a\" :\n\t{\"shape\":[ 1 ], \"data_offsets\": [0,1],\r\"dtype\":\"I8\"} }     ", "x");
  EXPECT_EQ(parse_safetensors(as_bytes(file), "f").tensors.size(), 1u);
}

TEST(Safetensors, ReadsMetadata) {
  const std::string file = safetensors_file(R"({"__metadata__":{"format":"pt","é\n":""}})");
  const SafetensorsContents contents = parse_safetensors(as_bytes(file), "f");
  EXPECT_EQ(contents.metadata.at("format"), "pt");
  EXPECT_EQ(contents.metadata.at("é\n"), "");
}

TEST(Safetensors, KeepsEscapedNamesValidThroughMoves) {
  const std::string file =
      safetensors_file(R"({"\u00e9":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                       R"("a\"b\\":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                       R"("\ud83d\ude00":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})");
  SafetensorsContents contents = parse_safetensors(as_bytes(file), "f");
  const SafetensorsContents moved = std::move(contents);
  ASSERT_EQ(moved.tensors.size(), 3u);
  EXPECT_EQ(moved.tensors[0].name, "a\"b\\");
  EXPECT_EQ(moved.tensors[1].name, "é");
  EXPECT_EQ(moved.tensors[2].name, "😀");
}

TEST(Safetensors, AcceptsEveryDtypeOfTheFormat) {
  for (int i = 0; i <= static_cast<int>(Dtype::U64); ++i) {
    const auto dtype = static_cast<Dtype>(i);
    const std::size_t size = bits(dtype) * 4 / 8;  // four elements end on a byte in every dtype
    const std::string file =
        safetensors_file("{\"a\":{\"dtype\":\"" + std::string(to_string(dtype)) +
                             "\",\"shape\":[4],\"data_offsets\":[0," + std::to_string(size) + "]}}",
                         std::string(size, 'x'));
    EXPECT_EQ(parse_safetensors(as_bytes(file), "f").tensors[0].dtype, dtype);
  }
}

TEST(Safetensors, AcceptsEmptyTensorsBetweenOthers) {
  const std::string file = safetensors_file(
      R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"e":{"dtype":"F32","shape":[7,0],"data_offsets":[3,3]},)"
      R"("z":{"dtype":"U8","shape":[1],"data_offsets":[3,4]},"y":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})",
      "abcd");
  EXPECT_EQ(parse_safetensors(as_bytes(file), "f").tensors.size(), 4u);
}

}  // namespace
}  // namespace normscope::files
