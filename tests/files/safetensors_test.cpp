#include <normscope/files/safetensors.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>

#include "files/test_files.hpp"
#include "support/data.hpp"
#include "support/scratch.hpp"

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

using test::error_of;
using test::Scratch;

std::string get(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(WriteSafetensors, WritesTheReferencesBytes) {
  const Scratch scratch;
  const std::vector<NewTensor> tensors = {{"b", Dtype::U8, {3}, as_bytes("xyz")},
                                          {"w", Dtype::F32, {1, 2}, as_bytes("01234567")},
                                          {"a", Dtype::F32, {}, as_bytes("abcd")}};
  write_safetensors(scratch / "out", tensors, {{"format", "pt"}});
  // Wider dtypes first, names within a dtype, spaces up to a multiple of eight.
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
      R"("w":{"dtype":"F32","shape":[1,2],"data_offsets":[4,12]},"b":{"dtype":"U8","shape":[3],"data_offsets":[12,15]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(get(scratch / "out"), test::safetensors_file(padded, "abcd01234567xyz"));
}

TEST(WriteSafetensors, WritesAnEmptyCheckpoint) {
  const Scratch scratch;
  write_safetensors(scratch / "out", {});
  EXPECT_EQ(get(scratch / "out"), test::safetensors_file("{}      "));
}

TEST(WriteSafetensors, EscapesNamesAndMetadata) {
  const Scratch scratch;
  const std::vector<NewTensor> tensors = {{"é\n\"\\", Dtype::U8, {1}, as_bytes("x")}};
  write_safetensors(scratch / "out.safetensors", tensors, {{"k\"", "\x01"}});
  const Checkpoint checkpoint(scratch / "out.safetensors");
  EXPECT_NE(checkpoint.find("é\n\"\\"), nullptr);
  EXPECT_EQ(checkpoint.metadata().at("k\""), "\x01");
}

TEST(WriteSafetensors, RejectsWhatWouldNotReadBack) {
  const Scratch scratch;
  const std::string where = "write_safetensors: " + (scratch / "out").string() + ": ";
  const auto complaint = [&](ErrorCode code, const std::vector<NewTensor>& tensors) {
    return error_of(code, [&] { write_safetensors(scratch / "out", tensors); });
  };
  EXPECT_EQ(complaint(ErrorCode::Shape, {{"a", Dtype::F32, {2}, as_bytes("1234567")}}),
            where + "tensor \"a\" has 7 bytes, expected 2 elements of F32");
  EXPECT_EQ(complaint(ErrorCode::Shape, {{"a", Dtype::F32, {1ull << 40, 1ull << 40}, {}}}),
            where + "tensor \"a\" has 0 bytes, expected too many elements of F32");
  EXPECT_EQ(complaint(ErrorCode::Shape, {{"a", Dtype::F64, {1ull << 60}, {}}}),
            where + "tensor \"a\" has 0 bytes, expected too many elements of F64");
  EXPECT_EQ(complaint(ErrorCode::Shape, {{"a", Dtype::F4, {1}, {}}}),
            where + "tensor \"a\" has 0 bytes, expected 1 elements of F4");
  EXPECT_EQ(complaint(ErrorCode::Argument, {{"a", Dtype::U8, {0}, {}}, {"a", Dtype::F32, {0}, {}}}),
            where + "two tensors are named \"a\"");
  EXPECT_EQ(complaint(ErrorCode::Argument, {{"__metadata__", Dtype::U8, {0}, {}}}),
            where + "a tensor is named __metadata__, which the format reserves");
  EXPECT_EQ(complaint(ErrorCode::Argument, {{"\xff", Dtype::U8, {0}, {}}}), where + "\"\\xff\" is not UTF-8");
  EXPECT_TRUE(std::filesystem::is_empty(scratch.folder()));
}

TEST(WriteSafetensors, ShowsEveryByteThatItWrites) {
  const Scratch scratch;
  std::string seen;
  const auto watch = [&seen](std::span<const std::byte> bytes) {
    seen.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  SafetensorsWriter writer(scratch / "out", {{"a", Dtype::U8, {3}}}, {}, watch);
  writer.write(as_bytes("xy"));
  writer.write(as_bytes("z"));
  writer.commit();
  EXPECT_EQ(seen, get(scratch / "out"));
  EXPECT_EQ(seen.substr(seen.size() - 3), "xyz");
}

TEST(WriteSafetensors, WritesLargeFilesAsItWritesSmallOnes) {
  const Scratch scratch;
  std::string large(std::size_t{16} << 20U, 'x');
  large.back() = 'y';
  write_safetensors(scratch / "out.safetensors",
                    std::vector<NewTensor>{{"a", Dtype::U8, {large.size()}, as_bytes(large)}});
  const Checkpoint checkpoint(scratch / "out.safetensors");
  EXPECT_TRUE(equal(checkpoint.find("a")->bytes, as_bytes(large)));
}

TEST(WriteSafetensors, RejectsHeadersOfTensorsWithoutASize) {
  const Scratch scratch;
  for (const TensorHeader& header :
       {TensorHeader{"a", Dtype::F4, {1}}, TensorHeader{"a", Dtype::F64, {1ull << 60}}}) {
    EXPECT_EQ(
        error_of(ErrorCode::Shape, [&] { const SafetensorsWriter writer(scratch / "out", {header}, {}); }),
        "write_safetensors: " + (scratch / "out").string() + ": tensor \"a\" has no size in whole bytes");
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.folder()));
}

TEST(WriteSafetensors, RewritesARealCheckpointUnchanged) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/gpt2_small_without_mlp/model.safetensors");
  const Scratch scratch;
  const Checkpoint original(path);
  std::vector<NewTensor> tensors;
  for (const Tensor& tensor : original.tensors()) {
    tensors.push_back({std::string(tensor.name),
                       tensor.dtype,
                       {tensor.shape.begin(), tensor.shape.end()},
                       tensor.bytes.memory()});
  }
  write_safetensors(scratch / "copy.safetensors", tensors, original.metadata());
  const Checkpoint copy(scratch / "copy.safetensors");
  ASSERT_EQ(copy.tensors().size(), original.tensors().size());
  EXPECT_EQ(copy.metadata(), original.metadata());
  for (const Tensor& tensor : original.tensors()) {
    const Tensor* same = copy.find(tensor.name);
    ASSERT_NE(same, nullptr) << tensor.name;
    EXPECT_EQ(same->dtype, tensor.dtype);
    EXPECT_EQ(std::vector<std::uint64_t>(same->shape.begin(), same->shape.end()),
              std::vector<std::uint64_t>(tensor.shape.begin(), tensor.shape.end()));
    EXPECT_TRUE(equal(same->bytes, tensor.bytes)) << tensor.name;
  }
}

}  // namespace

}  // namespace normscope::files
