#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>

#include "checkpoint/fixture_files.hpp"
#include "checkpoint/onnx_files.hpp"
#include "checkpoint/tensorflow_files.hpp"
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

using TensorflowEntries = std::vector<std::pair<std::string, test::Proto>>;
const test::Proto one_file = test::Proto().integer(1, 1).integer(2, 0);

/// An entry of a vector of that type in the first file, without a checksum.
test::Proto tensorflow_entry(std::uint64_t type, std::uint64_t extent, std::uint64_t offset,
                             std::uint64_t size) {
  const test::Proto dimension = test::Proto().integer(1, extent).bytes(2, "name");
  const test::Proto shape = test::Proto().message(2, dimension).integer(3, 0);
  return test::Proto().integer(1, type).message(2, shape).integer(3, 0).integer(4, offset).integer(5, size);
}

Checkpoint tensorflow_of(const TensorflowEntries& entries, const std::string& elements) {
  return Checkpoint("m.index", [&](const std::filesystem::path& path) {
    return std::make_unique<test::MemoryFile>(path.extension() == ".index" ? test::tensorflow_index(entries)
                                                                           : elements);
  });
}

TEST(Tensorflow, ReadsElementsOfEveryType) {
  const std::vector<std::pair<std::uint64_t, Dtype>> types = {
      {1, Dtype::F32},   {2, Dtype::F64},   {3, Dtype::I32},      {4, Dtype::U8},
      {5, Dtype::I16},   {6, Dtype::I8},    {8, Dtype::C64},      {9, Dtype::I64},
      {10, Dtype::BOOL}, {14, Dtype::BF16}, {17, Dtype::U16},     {19, Dtype::F16},
      {22, Dtype::U32},  {23, Dtype::U64},  {24, Dtype::F8_E5M2}, {25, Dtype::F8_E4M3}};
  for (const auto& [number, dtype] : types) {
    const std::uint64_t size = bits(dtype) / 8;
    const Checkpoint checkpoint =
        tensorflow_of({{"", one_file}, {"a", tensorflow_entry(number, 1, 0, size)}}, std::string(size, '\0'));
    EXPECT_EQ(checkpoint.find("a")->dtype, dtype);
    EXPECT_EQ(checkpoint.find("a")->bytes.size(), size);
  }
  EXPECT_EQ(tensorflow_complaint(
                ErrorCode::Unsupported,
                test::tensorflow_index({{"", one_file}, {"a", tensorflow_entry(20, 1, 0, 4)}}), ""),
            "tensor \"a\" has type 20, which is not known");
}

TEST(Tensorflow, ReadsElementsWithoutAChecksumAndTensorsWithoutElements) {
  const test::Proto empty = test::Proto(tensorflow_entry(1, 0, 0, 0)).real(6, 1);
  // Of another field, which later versions may add.
  const test::Proto text = test::Proto().integer(1, 7).integer(5, 99).integer(8, 1);
  const Checkpoint checkpoint =
      tensorflow_of({{"", one_file}, {"a", tensorflow_entry(1, 2, 4, 8)}, {"b", empty}, {"c", text}},
                    test::le(1.0F) + test::le(2.0F) + test::le(3.0F));
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(read(*checkpoint.find("a")), (std::vector<double>{2, 3}));
  EXPECT_EQ(read(*checkpoint.find("b")), std::vector<double>{});
}

TEST(Tensorflow, RefusesEntriesThatAreNotSound) {
  const auto refused = [](ErrorCode code, const TensorflowEntries& entries) {
    return tensorflow_complaint(code, test::tensorflow_index(entries), std::string(8, '\0'));
  };
  const auto tensor = [&refused](ErrorCode code, const test::Proto& entry) {
    return refused(code, {{"", one_file}, {"a", entry}});
  };
  EXPECT_EQ(refused(ErrorCode::Format, {}), "has no header");
  EXPECT_EQ(refused(ErrorCode::Format, {{"a", tensorflow_entry(1, 1, 0, 4)}, {"", one_file}}),
            "has tensor \"a\" before its header");
  EXPECT_EQ(refused(ErrorCode::Unsupported, {{"", test::Proto().integer(2, 1)}}),
            "is a big-endian file, expected little-endian");
  for (const std::uint64_t files : {std::uint64_t{0}, std::uint64_t{100'001}}) {
    EXPECT_EQ(refused(ErrorCode::Unsupported, {{"", test::Proto().integer(1, files)}}),
              "has " + std::to_string(files) + " files of elements, expected 1 to 100000");
  }
  EXPECT_EQ(tensor(ErrorCode::Format, tensorflow_entry(1, 1, 0, 4).integer(3, 1)),
            "tensor \"a\" is in file 1 of 1");
  EXPECT_EQ(tensor(ErrorCode::Format, tensorflow_entry(1, 1, 9, 4)),
            "tensor \"a\" has 4 bytes at byte 9 of its file, which has 8");
  EXPECT_EQ(tensor(ErrorCode::Format, tensorflow_entry(1, 1, 6, 4)),
            "tensor \"a\" has 4 bytes at byte 6 of its file, which has 8");
  EXPECT_EQ(tensor(ErrorCode::Shape, tensorflow_entry(1, 1, 0, 8)),
            "tensor \"a\" has 8 bytes, expected 4 for 1 elements of F32");
  EXPECT_EQ(tensor(ErrorCode::Unsupported, tensorflow_entry(1, 1, 0, 4).bytes(7, "")),
            "tensor \"a\" is stored in slices, as partitioned variables are, which are not read");
  test::Proto shape;
  for (int axis = 0; axis < 255; ++axis) shape.bytes(2, "");
  EXPECT_EQ(tensor(ErrorCode::Format, test::Proto().message(2, shape)),
            "has a tensor of more than 254 dimensions");
}

/// An attribute of a node of the object graph.
test::Proto tensorflow_attribute(const std::string& name, const std::string& key) {
  return test::Proto().bytes(1, "VARIABLE_VALUE").bytes(2, name).bytes(3, key);
}

TEST(Tensorflow, NamesVariablesByTheirKeysUnlessTheirNamesAreUnique) {
  const std::string ending = "/.ATTRIBUTES/VARIABLE_VALUE";
  const test::Proto object = test::Proto()
                                 .integer(1, 0)
                                 .message(2, tensorflow_attribute("unique", "a" + ending))
                                 .message(2, tensorflow_attribute("twice", "b" + ending))
                                 .message(2, tensorflow_attribute("twice", "c" + ending))
                                 .message(2, tensorflow_attribute("", "d" + ending))
                                 .message(2, tensorflow_attribute("slot", "e/.OPTIMIZER_SLOT/m" + ending));
  const std::string graph = test::Proto().integer(2, 1).message(1, object).text();
  const std::string text = test::tensorflow_varint(graph.size()) + "crc?" + graph;
  const auto entries = [&](std::uint64_t size) {
    TensorflowEntries all = {
        {"", one_file},
        {"_CHECKPOINTABLE_OBJECT_GRAPH", test::Proto().integer(1, 7).integer(4, 4).integer(5, size)}};
    for (const char* key : {"a", "b", "c", "d", "e/.OPTIMIZER_SLOT/m"}) {
      all.emplace_back(key + ending, tensorflow_entry(1, 1, 0, 4));
    }
    return all;
  };
  const auto names = [](const Checkpoint& checkpoint) {
    std::vector<std::string> found;
    for (const Tensor& tensor : checkpoint.tensors()) found.emplace_back(tensor.name);
    return found;
  };
  EXPECT_EQ(names(tensorflow_of(entries(text.size()), "1234" + text)),
            (std::vector<std::string>{"b", "c", "d", "e/.OPTIMIZER_SLOT/m", "unique"}));
  // A graph that is too large is passed over.
  EXPECT_EQ(names(tensorflow_of(entries((std::uint64_t{64} << 20U) + 1), "1234" + text)),
            (std::vector<std::string>{"a", "b", "c", "d", "e/.OPTIMIZER_SLOT/m"}));
  EXPECT_EQ(tensorflow_complaint(ErrorCode::Format, test::tensorflow_index(entries(text.size() - 1)),
                                 "1234" + text),
            "object graph needs " + std::to_string(graph.size()) + " bytes, " +
                std::to_string(graph.size() - 1) + " are left");
}

TEST(Tensorflow, RefusesTablesThatAreNotSound) {
  const auto refused = [](ErrorCode code, const std::string& index) {
    return tensorflow_complaint(code, index, "");
  };
  const std::string header = test::level_entry("", one_file.text());
  const auto of_block = [&refused](ErrorCode code, const std::string& body, char type = 0) {
    test::LevelFile file;
    const std::string block = file.block(body, type);
    return refused(code, file.file({block}));
  };
  EXPECT_EQ(refused(ErrorCode::Format, std::string(47, 'x')),
            "has 47 bytes, expected a table with a footer of 48");
  EXPECT_EQ(refused(ErrorCode::Format, std::string(48, 'x')),
            "does not end as the index of a TensorFlow checkpoint does");
  EXPECT_EQ(of_block(ErrorCode::Unsupported, header + test::one_restart, 1),
            "block at byte 0 is compressed, expected it as it is");
  EXPECT_EQ(of_block(ErrorCode::Format, "123"), "has a block without its list of restarts");
  EXPECT_EQ(of_block(ErrorCode::Format, test::le(std::uint32_t{0}) + test::le(std::uint32_t{2})),
            "has a block shorter than its list of restarts");
  EXPECT_EQ(of_block(ErrorCode::Format, header + test::level_entry("a", "", 1) + test::one_restart),
            "has a key that shares more bytes than the previous key has");
  EXPECT_EQ(of_block(ErrorCode::Unsupported,
                     header + test::level_entry(std::string(4097, 'a'), "") + test::one_restart),
            "has a key of more than 4096 bytes");

  test::LevelFile file;
  const std::string first = file.block(header + test::one_restart);
  const std::string second = file.block(test::one_restart);
  EXPECT_EQ(refused(ErrorCode::Format, file.file({second, first})),
            "has blocks that are not in the order of their positions");
  std::string damaged = file.file({first, second});
  damaged[1] = static_cast<char>(damaged[1] ^ 1);
  EXPECT_EQ(refused(ErrorCode::Format, damaged),
            "block at byte 0 does not have the checksum that is stored with it");
  // The footer alone, with a block that begins, ends or has its trailer behind the file.
  for (const std::uint64_t begin : {49, 47, 44}) {
    const std::string place = test::tensorflow_varint(begin) + test::tensorflow_varint(begin == 47 ? 2 : 0);
    EXPECT_EQ(refused(ErrorCode::Format, test::LevelFile().ended(place)),
              "block of " + std::string(begin == 47 ? "2" : "0") + " bytes at byte " + std::to_string(begin) +
                  " extends beyond the file, which has 48");
  }
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
