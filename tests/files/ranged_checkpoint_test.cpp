#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/onnx_graph.hpp>
#include <normscope/files/source.hpp>

#include "files/gguf_files.hpp"
#include "files/onnx_files.hpp"
#include "files/test_files.hpp"
#include "files/torch_files.hpp"
#include "support/data.hpp"
#include "support/scratch.hpp"

namespace normscope::files {
namespace {

namespace fs = std::filesystem;
using test::put;
using test::Scratch;

struct Counts {
  std::uint64_t bytes = 0;
  std::uint64_t end = 0;  ///< of what was read furthest behind
};

/// Counts the reads of another source, and never offers its bytes in memory.
class CountingSource : public files::Source {
 public:
  CountingSource(std::unique_ptr<files::Source> source, Counts& counts)
      : source_(std::move(source)), counts_(counts) {}

  [[nodiscard]] std::uint64_t size() const override { return source_->size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    ASSERT_LE(offset + out.size(), size());
    const std::lock_guard lock(mutex_);
    counts_.bytes += out.size();
    counts_.end = std::max(counts_.end, offset + out.size());
    source_->read(offset, out);
  }

 private:
  std::unique_ptr<files::Source> source_;
  Counts& counts_;
  mutable std::mutex mutex_;
};

files::OpenSource counted(Counts& counts) {
  return [&counts](const fs::path& path) {
    return std::make_unique<CountingSource>(files::read_file(path), counts);
  };
}

TEST(Checkpoint, ReadsOnlyTheRequestedPartsOfALargeFile) {
  const Scratch scratch;
  const fs::path path = scratch / "large.safetensors";
  const std::string header =
      R"({"big":{"dtype":"F32","shape":[3221225472],"data_offsets":[0,12884901888]},)"
      R"("small":{"dtype":"F32","shape":[2],"data_offsets":[12884901888,12884901896]}})";
  put(path, test::safetensors_file(header));
  const std::uint64_t data = fs::file_size(path);
  fs::resize_file(path, data + 12884901888);  // a hole, which takes no space
  {
    const float values[] = {1.5f, -2.0f};
    std::ofstream end(path, std::ios::binary | std::ios::app);
    end.write(reinterpret_cast<const char*>(values), sizeof values);
  }
  Counts counts;
  const Checkpoint checkpoint(path, counted(counts));
  // The format is recognized from 4 KiB, and the header is read once.
  EXPECT_LE(counts.bytes, 4096 + 8 + header.size());
  counts = {};
  EXPECT_EQ(read(*checkpoint.find("small")), (std::vector<double>{1.5, -2.0}));
  EXPECT_EQ(counts.bytes, 8u);
  EXPECT_EQ(counts.end, data + 12884901896);
  counts = {};
  EXPECT_EQ(read(*checkpoint.find("big"), 3000000000u, 3), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(counts.bytes, 12u);
  EXPECT_EQ(counts.end, data + 12000000012u);
  EXPECT_EQ(Checkpoint(path).find("small")->bytes.size(), 8u);
}

/// A state dict with a row-major tensor and a transposed one, of a storage of `count` numbers each.
std::string torch_file(std::int32_t count) {
  const std::string pickle = test::Pickle()
                                 .op("}(")
                                 .text("a")
                                 .tensor("0", count, 2, {count - 2}, {1})
                                 .text("b")
                                 .tensor("1", count, 1, {3, 2}, {1, 3})
                                 .op("u")
                                 .stop();
  const std::string numbers = test::counting(static_cast<std::size_t>(count));
  std::vector<test::ZipEntry> members = test::torch_members(pickle, {numbers, numbers});
  members.emplace_back("little", "m/byteorder");
  return test::zip(members);
}

/// A model whose initializers store their elements in each of the ways, and a Constant node.
std::string onnx_file(std::uint64_t count) {
  const std::vector<float> values{1.5f, 2.5f};
  const test::Proto constant = test::tensor_proto("", test::onnx_float, {2}).bytes(9, test::raw(values));
  test::OnnxFile file;
  file.weights("gain", {count})
      .initializer(test::tensor_proto("packed", test::onnx_float, {2}).bytes(4, test::raw(values)))
      .initializer(test::tensor_proto("single", test::onnx_float, {2}).real(4, 3).real(4, 4))
      .initializer(test::tensor_proto("integers", test::onnx_int64, {2}).bytes(7, "\1\2"))
      .node("Constant", {}, "value", {test::Proto().bytes(1, "value").message(5, constant)})
      .node("Mul", {"x", "gain"}, "y");
  return file.text();
}

RC_GTEST_PROP(Checkpoint, ChecksARangedFileAsStrictly, ()) {
  const auto [name, whole] = *rc::gen::elementOf(std::vector<std::pair<std::string, std::string>>{
      {"x.safetensors",
       test::safetensors_file(
           R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})",
           "01234567xyz")},
      {"x.pt", torch_file(7)},
      {"x.onnx", onnx_file(2)}});
  std::string broken = whole.substr(
      0, *rc::gen::weightedOneOf<std::size_t>(
             {{1, rc::gen::inRange<std::size_t>(0, whole.size() + 1)}, {1, rc::gen::just(whole.size())}}));
  if (!broken.empty() && *rc::gen::arbitrary<bool>()) {
    broken[*rc::gen::inRange<std::size_t>(0, broken.size())] ^= static_cast<char>(*rc::gen::inRange(1, 256));
  }
  const Scratch scratch;
  put(scratch / name, broken);
  const auto outcome = [path = scratch / name](const files::OpenSource& open) -> std::string {
    try {
      const Checkpoint checkpoint(path, open);
      std::string names;
      for (const Tensor& tensor : checkpoint.tensors()) {
        names += std::string(tensor.name) + std::to_string(tensor.bytes.size());
      }
      return names;
    } catch (const Error& error) {
      return error.what();
    }
  };
  RC_ASSERT(outcome(files::map_file) == outcome(files::read_file));
}

void expect_same(const fs::path& path) {
  Counts counts;
  const Checkpoint mapped(path);
  const Checkpoint ranged(path, counted(counts));
  EXPECT_EQ(ranged.format(), mapped.format());
  EXPECT_EQ(ranged.files(), mapped.files());
  EXPECT_EQ(ranged.config_text(), mapped.config_text());
  ASSERT_EQ(ranged.tensors().size(), mapped.tensors().size());
  for (std::size_t i = 0; i < mapped.tensors().size(); ++i) {
    EXPECT_EQ(ranged.tensors()[i].name, mapped.tensors()[i].name);
    EXPECT_TRUE(equal(ranged.tensors()[i].bytes, mapped.tensors()[i].bytes)) << mapped.tensors()[i].name;
  }
}

TEST(Checkpoint, ReadsFormatsWithoutAHeaderAsAWhole) {
  const Scratch scratch;
  const std::string pickle = test::Pickle().op("}").text("a").tensor("0", 3, 0, {3}, {1}).op("s").stop();
  put(scratch / "m.pt", test::legacy_torch_file(pickle, {test::counting(3)}));
  expect_same(scratch / "m.pt");
}

TEST(Checkpoint, ReadsNoElementsOfARangedPyTorchFile) {
  const Scratch scratch;
  constexpr std::int32_t count = 2'000'000;
  put(scratch / "m.pt", torch_file(count));
  expect_same(scratch / "m.pt");
  Counts counts;
  const Checkpoint checkpoint(scratch / "m.pt", counted(counts));
  // The first 4 KiB identify the file's format. The zip's directory is read twice, from the last 64 KiB: once
  // to tell whose zip it is, once to parse it. Of the elements, b is copied.
  EXPECT_LT(counts.bytes, 4096u + 2 * (64u << 10) + 2000u);
  counts = {};
  EXPECT_EQ(read(*checkpoint.find("a"), count - 4, 2), (std::vector<double>{count - 1, count}));
  EXPECT_EQ(read(*checkpoint.find("b")), (std::vector<double>{2, 5, 3, 6, 4, 7}));
  EXPECT_EQ(counts.bytes, 8u);
}

TEST(Checkpoint, ReadsNoElementsOfARangedOnnxFile) {
  const Scratch scratch;
  put(scratch / "m.onnx", onnx_file(2'000'000));
  expect_same(scratch / "m.onnx");
  Counts counts;
  const Checkpoint checkpoint(scratch / "m.onnx", counted(counts));
  EXPECT_LT(counts.bytes, 4096u + 2000u);
  counts = {};
  EXPECT_EQ(read(*checkpoint.find("gain"), 8, 2), (std::vector<double>{9.0 / 8, 10.0 / 8}));
  EXPECT_EQ(counts.bytes, 8u);
  EXPECT_EQ(read(*checkpoint.find("value")), (std::vector<double>{1.5, 2.5}));
  ASSERT_NE(checkpoint.graph(), nullptr);
  EXPECT_EQ(checkpoint.graph()->nodes().size(), 2u);
}

TEST(Checkpoint, ReadsOnlyTheHeaderOfAGgufFile) {
  const Scratch scratch;
  put(scratch / "m.gguf", test::GgufFile().text("k", "v").floats("gain", {1000}).file());
  expect_same(scratch / "m.gguf");
  Counts counts;
  const Checkpoint checkpoint(scratch / "m.gguf", counted(counts));
  EXPECT_LT(counts.bytes, 4096u + 200u);
  counts = {};
  EXPECT_EQ(read(*checkpoint.find("gain"), 10, 2), (std::vector<double>{11, 12}));
  EXPECT_EQ(counts.bytes, 8u);
}

TEST(Checkpoint, IsTheSameFromRangesOfRealFiles) {
  NORMSCOPE_NEED_DATA(path, "checkpoints");
  for (const char* name : {"rxnmapper_albert", "gpt_by_hand.safetensors", "magika_v3_3.onnx", "presto.pt"}) {
    expect_same(path / name);
  }
}

}  // namespace
}  // namespace normscope::files
