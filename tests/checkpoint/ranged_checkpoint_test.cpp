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

#include <normscope/bytes/source.hpp>
#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>

#include "checkpoint/gguf_files.hpp"
#include "checkpoint/onnx_files.hpp"
#include "checkpoint/test_files.hpp"
#include "support/data.hpp"
#include "support/scratch.hpp"

namespace normscope::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::put;
using test::Scratch;

struct Counts {
  std::uint64_t bytes = 0;
  std::uint64_t end = 0;  ///< of what was read furthest behind
};

/// Counts the reads of another source, and never offers its bytes in memory.
class CountingSource : public bytes::Source {
 public:
  CountingSource(std::unique_ptr<bytes::Source> source, Counts& counts)
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
  std::unique_ptr<bytes::Source> source_;
  Counts& counts_;
  mutable std::mutex mutex_;
};

bytes::OpenSource counted(Counts& counts) {
  return [&counts](const fs::path& path) {
    return std::make_unique<CountingSource>(bytes::read_file(path), counts);
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

TEST(Checkpoint, ChecksARangedFileAsStrictly) {
  const Scratch scratch;
  const std::string whole = test::safetensors_file(
      R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}})",
      "01234567xyz");
  rc::check("mapped or ranged, a broken file gives the same message", [&] {
    std::string broken = whole.substr(0, *rc::gen::inRange<std::size_t>(0, whole.size() + 1));
    if (!broken.empty() && *rc::gen::arbitrary<bool>()) {
      broken[*rc::gen::inRange<std::size_t>(0, broken.size())] ^=
          static_cast<char>(*rc::gen::inRange(1, 256));
    }
    put(scratch / "x.safetensors", broken);
    const auto outcome = [&](const bytes::OpenSource& open) -> std::string {
      try {
        const Checkpoint checkpoint(scratch / "x.safetensors", open);
        std::string names;
        for (const Tensor& tensor : checkpoint.tensors()) {
          names += std::string(tensor.name) + std::to_string(tensor.bytes.size());
        }
        return names;
      } catch (const Error& error) {
        return error.what();
      }
    };
    RC_ASSERT(outcome(bytes::map_file) == outcome(bytes::read_file));
  });
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
  put(scratch / "m.onnx", test::OnnxFile().weights("gain", {3}).text());
  expect_same(scratch / "m.onnx");
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
}  // namespace normscope::checkpoint
