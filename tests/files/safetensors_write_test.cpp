#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/safetensors.hpp>

#include "files/test_files.hpp"
#include "support/data.hpp"
#include "support/scratch.hpp"

namespace normscope::files {
namespace {

using test::as_bytes;
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
