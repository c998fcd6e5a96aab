#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>

#include "files/onnx_files.hpp"
#include "files/test_files.hpp"
#include "files/torch_files.hpp"
#include "support/scratch.hpp"

namespace normscope::files {
namespace {

namespace fs = std::filesystem;
using test::one_tensor_file;
using test::put;

/// A folder with an index and two shards: 1.safetensors holds a, 2.safetensors holds b.
class ShardIndex : public testing::Test {
 protected:
  ShardIndex() {
    put(scratch_ / "1.safetensors", one_tensor_file("a"));
    put(scratch_ / "2.safetensors", one_tensor_file("b"));
  }
  Checkpoint open(const std::string& index) const {
    put(index_, index);
    return Checkpoint(index_);
  }
  std::string complaint(const std::string& index, ErrorCode code = ErrorCode::Format) const {
    const std::string message = test::error_of(code, [&] { (void)open(index); });
    const std::string prefix = "checkpoint: " + index_.string() + ": ";
    return message.rfind(prefix, 0) == 0 ? message.substr(prefix.size()) : message;
  }

  test::Scratch scratch_;
  fs::path index_ = scratch_ / "model.safetensors.index.json";
};

TEST_F(ShardIndex, JoinsShards) {
  put(scratch_ / "config.json", "{}");
  const Checkpoint checkpoint = open(
      R"({"metadata":{"total_size":16,"x":[1,{"y":null}]},"weight_map":{"b":"2.safetensors","a":"1.safetensors"}})");
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.tensors()[0].name, "a");
  EXPECT_EQ(checkpoint.files().size(), 2u);
  EXPECT_EQ(checkpoint.file_of(*checkpoint.find("a")), scratch_ / "1.safetensors");
  EXPECT_EQ(checkpoint.file_of(*checkpoint.find("b")), scratch_ / "2.safetensors");
  EXPECT_EQ(read(*checkpoint.find("b")).size(), 2u);
  EXPECT_EQ(checkpoint.config_text(), "{}");
}

TEST_F(ShardIndex, KeepsTheFirstShardsMetadata) {
  put(scratch_ / "1.safetensors",
      test::safetensors_file(
          R"({"__metadata__":{"k":"1"},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"));
  put(scratch_ / "2.safetensors",
      test::safetensors_file(
          R"({"__metadata__":{"k":"2","l":"2"},"b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"));
  const Checkpoint checkpoint = open(R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  EXPECT_EQ(checkpoint.metadata().at("k"), "1");
  EXPECT_EQ(checkpoint.metadata().at("l"), "2");
}

TEST_F(ShardIndex, RejectsTensorsThatAreNotWhereTheyShouldBe) {
  EXPECT_EQ(complaint(R"({"weight_map":{"a":"1.safetensors","b":"1.safetensors"}})"),
            "lists tensor \"b\" in \"1.safetensors\", which does not contain it");
  EXPECT_EQ(complaint(R"({"weight_map":{"a":"1.safetensors","c":"2.safetensors"}})"),
            "lists tensor \"c\" in \"2.safetensors\", which does not contain it");
}

TEST_F(ShardIndex, RejectsTensorsThatAreNotListed) {
  put(scratch_ / "2.safetensors",
      test::safetensors_file(
          R"({"b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"extra":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"));
  EXPECT_EQ(complaint(R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})"),
            "does not list tensor \"extra\" of \"2.safetensors\"");
}

TEST_F(ShardIndex, RejectsTensorsThatAreInTwoShards) {
  put(scratch_ / "2.safetensors",
      test::safetensors_file(
          R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})"));
  EXPECT_EQ(complaint(R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})"),
            "tensor \"a\" is in both \"1.safetensors\" and \"2.safetensors\"");
}

TEST_F(ShardIndex, RejectsMissingAndBrokenShards) {
  EXPECT_EQ(complaint(R"({"weight_map":{"a":"3.safetensors"}})"),
            "names the shard \"3.safetensors\", which is missing");
  put(scratch_ / "2.safetensors", "");
  EXPECT_EQ(
      complaint(R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})"),
      "safetensors: " + (scratch_ / "2.safetensors").string() + ": file has 0 bytes, expected at least 8");
}

TEST_F(ShardIndex, RejectsShardNamesThatLeaveTheFolder) {
  for (const char* name : {"../1.safetensors", "/etc/passwd", "sub/1.safetensors", "..", ".", "",
                           "..\\\\1.safetensors", "a\\u0000b"}) {
    const std::string message = complaint("{\"weight_map\":{\"a\":\"" + std::string(name) + "\"}}");
    EXPECT_EQ(message.substr(0, 30), "weight_map puts tensor \"a\" int") << message;
    EXPECT_NE(message.find("expected a plain file name"), std::string::npos) << message;
  }
}

TEST_F(ShardIndex, RejectsOtherShapesOfJson) {
  const std::string no_map =
      "has no weight_map, which an index of shards has; name the model's folder or its file of weights";
  EXPECT_EQ(complaint("{}"), no_map);
  EXPECT_EQ(complaint(R"({"model_type":"gpt2"})"), no_map);
  EXPECT_EQ(complaint(R"({"weight_map":{}})"), "weight_map is empty");
  EXPECT_EQ(complaint(R"({"weight_map":[]})"), "weight_map is an array, expected an object");
  EXPECT_EQ(complaint(R"({"weight_map":null})"), "weight_map is null, expected an object");
  EXPECT_EQ(complaint(R"({"weight_map":"x"})"), "weight_map is a string, expected an object");
  EXPECT_EQ(complaint(R"({"weight_map":{"a":1}})"),
            "weight_map has a number for tensor \"a\", expected a file name");
  EXPECT_EQ(complaint(R"({"weight_map":{"a":{}}})"),
            "weight_map has an object for tensor \"a\", expected a file name");
  EXPECT_EQ(complaint(R"({"weight_map":{"a":["1.safetensors"]}})"),
            "weight_map has an array for tensor \"a\", expected a file name");
  EXPECT_EQ(complaint(R"({"metadata":{"weight_map":{"a":"1.safetensors"}}})"), no_map);
  EXPECT_EQ(complaint(R"({"weight_map":{"a":"1.safetensors"})"),
            "not one JSON object: syntax error at byte 36");
  EXPECT_EQ(complaint(R"({"weight_map":true})"), "weight_map is true, expected an object");
  EXPECT_EQ(complaint(R"({"weight_map":{"a":false}})"),
            "weight_map has false for tensor \"a\", expected a file name");
  EXPECT_EQ(complaint(R"({"weight_map":-1})"), "weight_map is a number, expected an object");
  EXPECT_EQ(complaint(R"({"weight_map":0.5})"), "weight_map is a number, expected an object");
  EXPECT_EQ(complaint(R"({"other":[true,-1,0.5,{"x":{}}],"weight_map":{"a":1}})"),
            "weight_map has a number for tensor \"a\", expected a file name");
  EXPECT_EQ(complaint("[1]"), "index is an array, expected an object");
  EXPECT_EQ(complaint("\"text\""), "index is a string, expected an object");
  EXPECT_EQ(complaint("7"), "index is a number, expected an object");
  EXPECT_EQ(complaint("false"), "index is false, expected an object");
  EXPECT_EQ(complaint(""), "not one JSON object: syntax error at byte 1");
}

TEST_F(ShardIndex, RejectsAHugeFile) {
  put(index_, "{}");
  fs::resize_file(index_, (std::uintmax_t{64} << 20U) + 1);
  EXPECT_EQ(test::error_of(ErrorCode::Format, [&] { const Checkpoint checkpoint(index_); }),
            "checkpoint: " + index_.string() + ": has 67108865 bytes, expected at most 67108864");
}

TEST_F(ShardIndex, RejectsShardsOfFormatsThatAreNotSharded) {
  put(scratch_ / "1.gguf", "GGUF");
  put(scratch_ / "1.json", R"({"weight_map":{}})");
  for (const auto& [name, format] : {std::pair("1.gguf", "GGUF"), std::pair("1.json", "index of shards")}) {
    EXPECT_EQ(test::error_of(
                  ErrorCode::Unsupported,
                  [&, name = name] { (void)open(R"({"weight_map":{"a":")" + std::string(name) + "\"}}"); }),
              "checkpoint: " + (scratch_ / name).string() + ": format is " + format +
                  ", expected safetensors or PyTorch");
  }
}

TEST_F(ShardIndex, HasNoMembers) {
  put(index_, "{}");
  EXPECT_EQ(
      test::error_of(ErrorCode::Argument, [&] { const Checkpoint checkpoint(index_.string() + ":model"); }),
      "checkpoint: " + index_.string() + ": has no members, found the name of one, \"model\"");
}

TEST_F(ShardIndex, RejectsShardsWithElementsInOtherFiles) {
  const test::Proto place = test::Proto().bytes(1, "location").bytes(2, "data");
  const test::Proto tensor = test::tensor_proto("a", test::onnx_float, {1}).message(13, place).integer(14, 1);
  put(scratch_ / "1.onnx", test::OnnxFile().initializer(tensor).text());
  put(scratch_ / "data", "1234");
  EXPECT_EQ(complaint(R"({"weight_map":{"a":"1.onnx"}})", ErrorCode::Unsupported),
            "onnx: " + (scratch_ / "1.onnx").string() +
                ": tensor \"a\" has its data in another file, expected it in this one");
}

TEST_F(ShardIndex, RejectsNamesThatComeTwice) {
  EXPECT_EQ(complaint(R"({"weight_map":{"a":"1.safetensors","a":"2.safetensors"}})"),
            "weight_map has tensor \"a\" twice");
  EXPECT_EQ(complaint(R"({"weight_map":{"a":"1.safetensors"},"weight_map":{}})"),
            "index has weight_map twice");
}

/// A PyTorch zip with the vector `name`, which holds 1 and 2.
std::string torch_file(const std::string& name) {
  const test::Pickle pickle = test::Pickle().op("}").text(name).tensor("0", 2, 0, {2}, {1}).op("s");
  return test::zip(test::torch_members(pickle.stop(), {test::counting(2)}));
}

/// An index whose shards are PyTorch zips, in a model's folder.
class TorchIndex : public testing::Test {
 protected:
  TorchIndex() {
    put(scratch_ / "pytorch_model-00001-of-00002.bin", torch_file("a"));
    put(scratch_ / "pytorch_model-00002-of-00002.bin", torch_file("b"));
    put(index_, R"({"weight_map":{"a":"pytorch_model-00001-of-00002.bin",)"
                R"("b":"pytorch_model-00002-of-00002.bin"}})");
    put(scratch_ / "config.json", "{}");
  }
  std::string complaint(ErrorCode code) const {
    return test::error_of(code, [&] { const Checkpoint checkpoint(scratch_.folder()); });
  }

  test::Scratch scratch_;
  fs::path index_ = scratch_ / "pytorch_model.bin.index.json";
};

TEST_F(TorchIndex, JoinsShardsOfAFolder) {
  for (const fs::path& path : {scratch_.folder(), index_}) {
    const Checkpoint checkpoint(path);
    EXPECT_EQ(checkpoint.format(), "pytorch");
    ASSERT_EQ(checkpoint.tensors().size(), 2u);
    EXPECT_EQ(checkpoint.file_of(*checkpoint.find("b")), scratch_ / "pytorch_model-00002-of-00002.bin");
    EXPECT_EQ(read(*checkpoint.find("b")), (std::vector<double>{1, 2}));
    EXPECT_EQ(checkpoint.config_text(), "{}");
  }
  EXPECT_EQ(Checkpoint(scratch_ / "pytorch_model-00001-of-00002.bin").config_text(), "{}");
  EXPECT_EQ(Checkpoint(scratch_.folder(), files::read_file).tensors().size(), 2u);
}

TEST_F(TorchIndex, ComesAfterSafetensorsAndNotBesideASingleFile) {
  put(scratch_ / "pytorch_model.bin", torch_file("c"));
  EXPECT_EQ(complaint(ErrorCode::Argument),
            "checkpoint: " + scratch_.folder().string() +
                ": has pytorch_model.bin and pytorch_model.bin.index.json, expected one of them; name the "
                "file to open");
  put(scratch_ / "model.safetensors", one_tensor_file("d"));
  EXPECT_NE(Checkpoint(scratch_.folder()).find("d"), nullptr);
}

TEST_F(TorchIndex, RejectsShardsOfOtherFormats) {
  const fs::path second = scratch_ / "pytorch_model-00002-of-00002.bin";
  put(second, one_tensor_file("b"));
  EXPECT_EQ(complaint(ErrorCode::Format),
            "checkpoint: " + index_.string() +
                ": has shards of two formats, pytorch and safetensors, expected one");
  put(second, "<html>");
  EXPECT_EQ(complaint(ErrorCode::Unsupported),
            "checkpoint: " + second.string() +
                ": format is HTML page, expected safetensors or PyTorch; download the file itself, not its "
                "page");
  put(second, R"({"weight_map":{}})");
  EXPECT_EQ(complaint(ErrorCode::Unsupported),
            "pytorch: " + second.string() + ": does not begin as the files of torch.save do");
  put(second, torch_file("c"));
  EXPECT_EQ(complaint(ErrorCode::Format),
            "checkpoint: " + index_.string() +
                ": lists tensor \"b\" in \"pytorch_model-00002-of-00002.bin\", which does not contain it");
}

}  // namespace
}  // namespace normscope::files
