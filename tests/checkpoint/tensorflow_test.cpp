#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>

#include "checkpoint/fixture_files.hpp"
#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::checkpoint {
namespace {

using test::fixture_bytes;
using test::fixture_file;

class TensorflowFixtures : public testing::TestWithParam<const char*> {};

TEST_P(TensorflowFixtures, HoldWhatTensorflowReads) {
  const std::string name = GetParam();
  const Checkpoint checkpoint(fixture_file(name + ".index"));
  EXPECT_EQ(checkpoint.format(), "tensorflow");
  test::expect_same_tensors(checkpoint, Checkpoint(fixture_file(name + ".safetensors")));
}
INSTANTIATE_TEST_SUITE_P(Tensorflow, TensorflowFixtures, testing::Values("tf_names", "tf_objects"));

TEST(Tensorflow, NamesVariablesAsTheObjectGraphDoes) {
  // A checkpoint is also named by the common prefix of its files.
  const Checkpoint checkpoint(fixture_file("tf_objects"));
  EXPECT_NE(checkpoint.find("sequential/layer_normalization/gamma"), nullptr);
  EXPECT_EQ(checkpoint.find("_CHECKPOINTABLE_OBJECT_GRAPH"), nullptr);
  for (const Tensor& tensor : checkpoint.tensors()) {
    EXPECT_EQ(tensor.name.find(".ATTRIBUTES"), std::string_view::npos) << tensor.name;
  }
  const Checkpoint names(fixture_file("tf_names"));
  const Tensor& gamma = *names.find("bert/encoder/layer_0/output/LayerNorm/gamma");
  EXPECT_EQ(names.file_of(gamma).filename(), "tf_names.data-00000-of-00002");
  EXPECT_EQ(names.file_of(*names.find("types/bool")).filename(), "tf_names.data-00001-of-00002");
}

/// Reads every tensor of a checkpoint with this index and these elements.
void read_tensorflow(const std::string& index, const std::string& elements) {
  const Checkpoint checkpoint("m.index", [&](const std::filesystem::path& path) {
    return std::make_unique<test::MemoryFile>(path.extension() == ".index" ? index : elements);
  });
  for (const Tensor& tensor : checkpoint.tensors()) (void)read(tensor);
}

std::string tensorflow_complaint(ErrorCode code, const std::string& index, const std::string& elements) {
  const std::string message = test::error_of(code, [&] { read_tensorflow(index, elements); });
  EXPECT_EQ(message.find('\n'), std::string::npos);
  const std::size_t name = message.find("m.index: ");
  return name == std::string::npos ? message : message.substr(name + 9);
}

TEST(Tensorflow, RefusesDamagedElements) {
  const std::string index = fixture_bytes("tf_objects.index");
  const std::string elements = fixture_bytes("tf_objects.data-00000-of-00001");
  // The first byte of the file of elements belongs to a variable.
  std::string damaged = elements;
  damaged[0] = static_cast<char>(damaged[0] ^ 1);
  EXPECT_NE(tensorflow_complaint(ErrorCode::Format, index, damaged)
                .find("does not have the checksum that the index states"),
            std::string::npos);
  EXPECT_NE(tensorflow_complaint(ErrorCode::Format, index, elements.substr(0, 100))
                .find("of its file, which has 100"),
            std::string::npos);
}

TEST(Tensorflow, RefusesEveryTruncationAndChangeOfTheIndex) {
  const std::string index = fixture_bytes("tf_objects.index");
  const std::string elements = fixture_bytes("tf_objects.data-00000-of-00001");
  std::size_t accepted = 0;
  for (std::size_t at = 0; at < index.size(); ++at) {
    EXPECT_NE(tensorflow_complaint(ErrorCode::Format, index.substr(0, at), elements), "") << at;
    std::string bytes = index;
    bytes[at] = static_cast<char>(~bytes[at]);
    try {
      read_tensorflow(bytes, elements);
      ++accepted;
    } catch (const Error&) {
    }
  }
  // Checksums cover all but the padding of the footer.
  EXPECT_LT(accepted, 48u);
}

TEST(Tensorflow, NamesOtherFilesOfACheckpoint) {
  const test::Scratch scratch;
  for (const char* file : {"tf_objects.index", "tf_objects.data-00000-of-00001"}) {
    std::filesystem::copy_file(fixture_file(file), scratch / file);
  }
  EXPECT_NE(test::error_of(ErrorCode::Unsupported,
                           [&scratch] { Checkpoint checkpoint(scratch / "tf_objects.data-00000-of-00001"); })
                .find("open the .index file beside it"),
            std::string::npos);
  EXPECT_EQ(Checkpoint(scratch.folder()).format(), "tensorflow");
}

}  // namespace
}  // namespace normscope::checkpoint
