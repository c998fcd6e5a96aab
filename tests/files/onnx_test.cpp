#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/files/array.hpp>
#include <normscope/files/checkpoint.hpp>
#include <normscope/files/onnx_graph.hpp>

#include "files/onnx_files.hpp"
#include "files/test_files.hpp"
#include "support/data.hpp"
#include "support/scratch.hpp"

namespace normscope::files {
namespace {

using namespace std::string_literals;
using test::onnx_float;
using test::onnx_int64;
using test::OnnxFile;
using test::Proto;
using test::raw;
using test::tensor_proto;
using Values = std::vector<double>;

Checkpoint open(const std::string& text) {
  const test::Scratch scratch;
  test::put(scratch / "m.onnx", text);
  return Checkpoint(scratch / "m.onnx");  // the mapping outlives the file's name
}
Checkpoint open(const Proto& initializer) { return open(OnnxFile().initializer(initializer).text()); }

/// The error message about a file, without the file's name at its start.
std::string complaint(ErrorCode code, const std::string& text) {
  const std::string message = test::error_of(code, [&text] { (void)open(text); });
  const std::size_t name = message.find("m.onnx: ");
  return message.rfind("onnx: ", 0) == 0 && name != std::string::npos ? message.substr(name + 8) : message;
}
std::string complaint(ErrorCode code, const Proto& initializer) {
  return complaint(code, OnnxFile().initializer(initializer).text());
}

Values values_of(const Proto& initializer) { return read(open(initializer).tensors()[0]); }

TEST(Onnx, ReadsRawData) {
  const Checkpoint checkpoint = open(OnnxFile().weights("b", {2, 1}).scalar("a", 7).text());
  EXPECT_EQ(checkpoint.format(), "onnx");
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.tensors()[0].name, "a");
  EXPECT_TRUE(checkpoint.tensors()[0].shape.empty());
  const Tensor& b = checkpoint.tensors()[1];
  EXPECT_EQ(b.dtype, Dtype::F32);
  EXPECT_EQ(std::vector<std::uint64_t>(b.shape.begin(), b.shape.end()), (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(read(b), (Values{0.125, 0.25}));
}

TEST(Onnx, ReadsTypedFieldsPackedOrNot) {
  const std::string floats = raw(std::vector<float>{1.5f, -2});
  EXPECT_EQ(values_of(tensor_proto("a", onnx_float, {2}).bytes(4, floats)), (Values{1.5, -2}));
  EXPECT_EQ(values_of(tensor_proto("a", onnx_float, {2}).real(4, 1.5f).real(4, -2)), (Values{1.5, -2}));
  EXPECT_EQ(values_of(tensor_proto("a", onnx_float, {3}).real(4, 1).bytes(4, floats)), (Values{1, 1.5, -2}));
  EXPECT_EQ(values_of(tensor_proto("a", 11, {1}).bytes(10, raw(std::vector<double>{0.1}))), Values{0.1});
  const std::uint64_t minus_one = ~std::uint64_t{0};
  EXPECT_EQ(values_of(tensor_proto("a", onnx_int64, {2}).integer(7, minus_one).integer(7, 300)),
            (Values{-1, 300}));
  const std::string packed = Proto().varint(minus_one).varint(300).text();
  EXPECT_EQ(values_of(tensor_proto("a", onnx_int64, {2}).bytes(7, packed)), (Values{-1, 300}));
  EXPECT_EQ(values_of(tensor_proto("a", 3, {1}).integer(5, minus_one)), Values{-1});
  EXPECT_EQ(values_of(tensor_proto("a", test::onnx_float16, {1}).integer(5, 0x3c00)), Values{1});
  EXPECT_EQ(values_of(tensor_proto("a", 16, {1}).integer(5, 0x3f80)), Values{1});
  EXPECT_EQ(values_of(tensor_proto("a", 12, {1}).integer(11, 4'000'000'000)), Values{4e9});
}

TEST(Onnx, ReadsPackedExtents) {
  const Proto tensor =
      Proto().bytes(1, "\2\1").integer(2, onnx_float).bytes(8, "a").bytes(9, std::string(8, '\0'));
  EXPECT_EQ(open(tensor).tensors()[0].elements(), 2u);
}

TEST(Onnx, TakesConstantNodesForTensors) {
  const Proto value = Proto()
                          .bytes(1, "value")
                          .message(5, tensor_proto("", onnx_float, {1}).bytes(9, raw(std::vector<float>{3})));
  const Checkpoint checkpoint =
      open(OnnxFile()
               .node("Constant", {}, "gain", {value})
               .node("Constant", {}, "eps", {Proto().bytes(1, "value_float").real(2, 0.5f)})
               .node("Constant", {}, "axes", {Proto().bytes(1, "value_ints").integer(8, ~std::uint64_t{0})})
               .text());
  EXPECT_EQ(read(*checkpoint.find("gain")), Values{3});
  EXPECT_EQ(read(*checkpoint.find("eps")), Values{0.5});
  EXPECT_EQ(read(*checkpoint.find("axes")), Values{-1});
}

TEST(Onnx, TakesNoTensorFromOtherConstants) {
  const Proto text =
      Proto().bytes(1, "value").message(5, tensor_proto("", test::onnx_string, {1}).bytes(6, "x"));
  const Proto number = Proto().bytes(1, "value_float").real(2, 0.5f);
  OnnxFile file;
  file.node("Constant", {}, "text", {text})
      .node("Constant", {}, "nothing", {Proto().bytes(1, "value").integer(3, 1)})
      .node("Constant", {}, "integer", {Proto().bytes(1, "value_float").integer(3, 1)})
      .node("Constant", {}, "word", {Proto().bytes(1, "value_string").bytes(4, "x")})
      .node("Relu", {}, "relu", {number});
  const Proto without_output = Proto().bytes(4, "Constant").message(5, number);
  const std::string graph = Proto().message(1, without_output).text();
  EXPECT_EQ(open(file.text()).tensors().size(), 0u);
  EXPECT_EQ(open(Proto().integer(1, 8).bytes(2, "test").bytes(7, graph).text()).tensors().size(), 0u);
}

TEST(Onnx, KnowsWhatMakesAndTakesAValue) {
  const Checkpoint checkpoint = open(OnnxFile()
                                         .weights("w", {2})
                                         .scalar("unused", 1)
                                         .node("Clip", {"x", "", "w"}, "y")
                                         .node("Split", {"y"}, "")
                                         .text());
  const OnnxGraph& graph = *checkpoint.graph();
  ASSERT_EQ(graph.nodes().size(), 2u);
  const OnnxNode& clip = graph.nodes()[0];
  ASSERT_EQ(clip.inputs.size(), 3u);
  EXPECT_EQ(clip.inputs[1], no_value);
  EXPECT_EQ(graph.nodes()[1].outputs[0], no_value);
  EXPECT_EQ(graph.constant(clip.inputs[2]), checkpoint.find("w"));
  EXPECT_EQ(graph.constant(clip.inputs[0]), nullptr);
  EXPECT_EQ(graph.maker(clip.inputs[0]), nullptr);
  EXPECT_EQ(graph.maker(clip.outputs[0]), &clip);
  ASSERT_EQ(graph.takers(clip.outputs[0]).size(), 1u);
  EXPECT_EQ(graph.takers(clip.outputs[0])[0], 1u);
  EXPECT_EQ(graph.maker(no_value), nullptr);
  EXPECT_EQ(graph.constant(no_value), nullptr);
  EXPECT_TRUE(graph.takers(no_value).empty());
}

TEST(Onnx, ReadsTheAttributesOfNodes) {
  using Type = OnnxAttribute::Type;
  const std::vector<Proto> attributes = {
      test::integer_attribute("axis", -1),
      test::real_attribute("epsilon", 0.5f),
      Proto().bytes(1, "axes").integer(8, 1).integer(8, 2),
      Proto().bytes(1, "packed").bytes(8, "\5"),
      Proto().bytes(1, "mode").bytes(4, "linear").integer(20, 3),
      Proto().bytes(1, "zero").integer(20, 2),                          // a zero that is left out
      Proto().bytes(1, "no axes").integer(20, 7),                       // an empty list
      Proto().bytes(1, "nothing"),                                      // no type and no value
      Proto().bytes(1, "liar").integer(3, 1).integer(20, 1),            // an integer that says it is real
      Proto().bytes(1, "both").integer(3, 1).real(2, 1),                // two values
      Proto().bytes(1, "subgraph").bytes(6, "").integer(20, 5),         // a graph
      Proto().bytes(1, "of a function").bytes(21, "x").integer(20, 2),  // a value that the caller gives
  };
  const Type types[] = {Type::integer, Type::real,    Type::integers, Type::integers,
                        Type::text,    Type::integer, Type::integers, Type::other,
                        Type::other,   Type::other,   Type::other,    Type::other};
  const Checkpoint checkpoint =
      open(OnnxFile().node("A", {"x"}, "y", attributes).node("B", {"x"}, "z").text());
  const OnnxNode& node = checkpoint.graph()->nodes()[0];
  ASSERT_EQ(node.attributes.size(), attributes.size());
  for (std::size_t i = 0; i < attributes.size(); ++i)
    EXPECT_EQ(node.attributes[i].type, types[i]) << node.attributes[i].name;
  EXPECT_EQ(node.integer("axis", 7), -1);
  EXPECT_EQ(node.integer("absent", 7), 7);
  EXPECT_EQ(node.real("epsilon", 7), 0.5);
  EXPECT_EQ(node.real("absent", 7), 7.0);
  EXPECT_EQ(node.attribute("axes")->integers.size(), 2u);
  EXPECT_EQ(node.attribute("packed")->integers[0], 5);
  EXPECT_EQ(node.attribute("absent"), nullptr);
  EXPECT_TRUE(checkpoint.graph()->nodes()[1].has_only({}));
  EXPECT_EQ(
      complaint(ErrorCode::Format,
                OnnxFile().node("A", {"x"}, "y", {test::integer_attribute("a", 1).integer(2, 1)}).text()),
      "AttributeProto field 2 has wire type 0, expected 5");
}

TEST(Onnx, TellsAttributesThatAnOperatorMayHaveFromOthers) {
  using Type = OnnxAttribute::Type;
  const OnnxNode::Known known[] = {{"a", Type::integer}, {"b", Type::real}};
  const auto fits = [&](const std::vector<Proto>& attributes) {
    const Checkpoint checkpoint = open(OnnxFile().node("A", {"x"}, "y", attributes).text());
    return checkpoint.graph()->nodes()[0].has_only(known);
  };
  EXPECT_TRUE(fits({}));
  EXPECT_TRUE(fits({test::real_attribute("b", 1), test::integer_attribute("a", 1)}));
  EXPECT_FALSE(fits({test::integer_attribute("b", 1)})) << "of another type";
  EXPECT_FALSE(fits({test::integer_attribute("c", 1)})) << "of another name";
  EXPECT_FALSE(fits({test::integer_attribute("a", 1), test::integer_attribute("a", 2)})) << "twice";
}

TEST(Onnx, TellsOperatorsOfOnnxFromOthers) {
  const Checkpoint checkpoint = open(OnnxFile()
                                         .function("", "Gelu")
                                         .function("mine", "Norm")
                                         .node("Add", {"x"}, "a")
                                         .node("Add", {"x"}, "b", {}, "ai.onnx")
                                         .node("Add", {"x"}, "c", {}, "com.microsoft")
                                         .node("Gelu", {"x"}, "d", {}, "ai.onnx")
                                         .node("Norm", {"x"}, "e", {}, "mine")
                                         .text());
  const bool standard[] = {true, true, false, false, false};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(checkpoint.graph()->nodes()[i].is_standard, standard[i]) << i;
  EXPECT_EQ(checkpoint.graph()->nodes()[2].domain, "com.microsoft");
  EXPECT_NE(checkpoint.graph()->nodes()[4].domain, "mine");
}

TEST(Onnx, ReadsTheExtentsThatAreStated) {
  const Checkpoint checkpoint = open(OnnxFile()
                                         .scalar("w", 1)
                                         .input("x", {0, 4})
                                         .input("w", {})
                                         .input("not used", {3})
                                         .value("y", {2})
                                         .node("Relu", {"x"}, "y")
                                         .node("Add", {"y", "w"}, "z")
                                         .text());
  const OnnxGraph& graph = *checkpoint.graph();
  ASSERT_EQ(graph.stated_extents().size(), 3u);
  const OnnxExtents& x = graph.stated_extents()[0];
  EXPECT_EQ(graph.name(x.value), "x");
  EXPECT_EQ(std::vector<std::int64_t>(x.extents.begin(), x.extents.end()),
            (std::vector<std::int64_t>{-1, 4}));
  EXPECT_TRUE(graph.is_input(x.value));
  EXPECT_TRUE(graph.is_input(graph.nodes()[1].inputs[1])) << "an initializer that a caller may replace";
  EXPECT_FALSE(graph.is_input(graph.nodes()[0].output()));
  EXPECT_FALSE(graph.is_input(no_value));
}

TEST(Onnx, LeavesOutStrings) {
  const Checkpoint checkpoint =
      open(OnnxFile()
               .initializer(tensor_proto("words", test::onnx_string, {1}).bytes(6, "x"))
               .scalar("a", 1)
               .text());
  ASSERT_EQ(checkpoint.tensors().size(), 1u);
  EXPECT_EQ(checkpoint.tensors()[0].name, "a");
}

TEST(Onnx, ReadsMetadata) {
  const std::string text =
      OnnxFile().text() + Proto().message(14, Proto().bytes(1, "key").bytes(2, "value")).text();
  EXPECT_EQ(open(text).metadata().at("key"), "value");
}

TEST(Onnx, GivesArraysByName) {
  const test::Scratch scratch;
  test::put(scratch / "m.onnx", OnnxFile().weights("w", {2, 2}).text());
  EXPECT_EQ(read_array((scratch / "m.onnx").string() + ":w[1]").values, (Values{0.375, 0.5}));
}

/// A float tensor of two elements in another file.
Proto external_tensor(const std::string& name,
                      const std::vector<std::pair<std::string, std::string>>& place) {
  Proto tensor = tensor_proto(name, onnx_float, {2});
  for (const auto& [key, value] : place) tensor.message(13, Proto().bytes(1, key).bytes(2, value));
  return tensor.integer(14, 1);
}

TEST(Onnx, ReadsElementsInOtherFilesOfItsFolder) {
  const test::Scratch scratch;
  test::put(scratch / "m.onnx.data", test::raw<float>({1, 2, 3, 4}));
  test::put(scratch / "whole", test::raw<float>({5, 6}));
  OnnxFile file;
  file.weights("w", {2}).initializer(
      external_tensor("a", {{"location", "m.onnx.data"}, {"offset", "8"}, {"length", "8"}}));
  file.initializer(external_tensor("b", {{"location", "whole"}, {"checksum", "x"}}));
  test::put(scratch / "m.onnx", file.text());
  for (const files::OpenSource& open :
       {files::OpenSource(files::map_file), files::OpenSource(files::read_file)}) {
    const Checkpoint checkpoint(scratch / "m.onnx", open);
    EXPECT_EQ(read(*checkpoint.find("a")), (Values{3, 4}));
    EXPECT_EQ(read(*checkpoint.find("b")), (Values{5, 6}));
    EXPECT_EQ(checkpoint.files().size(), 3u);
    EXPECT_EQ(checkpoint.file_of(*checkpoint.find("a")), scratch / "m.onnx.data");
    EXPECT_EQ(checkpoint.file_of(*checkpoint.find("b")), scratch / "whole");
    EXPECT_EQ(checkpoint.file_of(*checkpoint.find("w")), scratch / "m.onnx");
  }
}

TEST(Onnx, RejectsElementsThatAreNotWhereItSays) {
  const test::Scratch scratch;
  test::put(scratch / "data", test::raw<float>({1, 2, 3}));
  const std::string prefix = "onnx: " + (scratch / "m.onnx").string() + ": ";
  const auto refused = [&](ErrorCode code, const std::vector<std::pair<std::string, std::string>>& place) {
    test::put(scratch / "m.onnx", OnnxFile().initializer(external_tensor("w", place)).text());
    const std::string message =
        test::error_of(code, [&] { const Checkpoint checkpoint(scratch / "m.onnx"); });
    return message.rfind(prefix, 0) == 0 ? message.substr(prefix.size()) : message;
  };
  for (const char* name : {"../data", "/etc/passwd", "sub/data", "..", ".", "", "a\\b", "C:data"}) {
    EXPECT_NE(
        refused(ErrorCode::Format, {{"location", name}}).find("expected a file name in the model's folder"),
        std::string::npos);
  }
  EXPECT_EQ(refused(ErrorCode::Format, {{"location", "data"}, {"offset", "8"}, {"length", "8"}}),
            "tensor \"w\" ends at byte 16 of \"data\", which has 12");
  EXPECT_EQ(refused(ErrorCode::Format, {{"location", "data"}, {"offset", "99"}}),
            "tensor \"w\" ends at byte 99 of \"data\", which has 12");
  EXPECT_EQ(refused(ErrorCode::Shape, {{"location", "data"}}),
            "tensor \"w\" has 12 bytes, expected 8 for 2 elements of F32");
  for (const char* number : {"-1", "", "1234567890123456789"}) {
    EXPECT_EQ(refused(ErrorCode::Format, {{"location", "data"}, {"offset", number}}),
              "the offset of a tensor in another file is \"" + std::string(number) + "\", expected a number");
    EXPECT_EQ(refused(ErrorCode::Format, {{"location", "data"}, {"length", number}}),
              "the length of a tensor in another file is \"" + std::string(number) + "\", expected a number");
  }
  EXPECT_EQ(refused(ErrorCode::Io, {{"location", "none"}}),
            "file: " + (scratch / "none").string() + ": cannot be opened: No such file or directory");
}

TEST(Onnx, NamesUnsupportedParts) {
  EXPECT_EQ(complaint(ErrorCode::Unsupported, tensor_proto("w", 14, {1}).bytes(9, std::string(8, '\0'))),
            "tensor \"w\" has data type 14 (COMPLEX64), which is not supported");
  EXPECT_EQ(complaint(ErrorCode::Unsupported, tensor_proto("w", 99, {})),
            "tensor \"w\" has data type 99, which is not supported");
  EXPECT_EQ(complaint(ErrorCode::Unsupported, Proto().bytes(3, "")),
            "a tensor is stored in segments, which are not supported");
  EXPECT_EQ(complaint(ErrorCode::Unsupported, Proto().integer(1, 8).message(7, Proto().bytes(15, "")).text()),
            "has a sparse initializer, which is not supported");
}

TEST(Onnx, RejectsWrongSizes) {
  EXPECT_EQ(complaint(ErrorCode::Shape, tensor_proto("w", onnx_float, {3}).bytes(9, std::string(8, '\0'))),
            "tensor \"w\" has 8 bytes, expected 12 for 3 elements of F32");
  EXPECT_EQ(complaint(ErrorCode::Shape, tensor_proto("w", onnx_float, {1})),
            "tensor \"w\" has 0 bytes, expected 4 for 1 elements of F32");
  EXPECT_EQ(complaint(ErrorCode::Shape, tensor_proto("w", onnx_float, {1u << 31, 1u << 31})),
            "size of tensor \"w\" overflows 64 bits");
  EXPECT_EQ(complaint(ErrorCode::Format, Proto().bytes(8, "w").integer(1, ~std::uint64_t{0})),
            "tensor \"w\" has a dimension of -1, expected 0 or more");
  Proto many = tensor_proto("w", onnx_float, {});
  for (int i = 0; i < 65; ++i) many.integer(1, 1);
  EXPECT_EQ(complaint(ErrorCode::Unsupported, many), "a tensor has more than 64 axes");
}

TEST(Onnx, RejectsNamesThatComeTwiceOrNotAtAll) {
  EXPECT_EQ(complaint(ErrorCode::Format, OnnxFile().scalar("a", 1).scalar("a", 2).text()),
            "has tensor \"a\" twice");
  EXPECT_EQ(complaint(ErrorCode::Format, tensor_proto("", onnx_float, {0})), "a tensor has no name");
  EXPECT_EQ(complaint(ErrorCode::Format, OnnxFile().node("Add", {}, "v").node("Mul", {}, "v").text()),
            "value \"v\" is the output of two nodes");
  EXPECT_EQ(complaint(ErrorCode::Format, OnnxFile().scalar("v", 1).node("Mul", {}, "v").text()),
            "value \"v\" is the output of a node and an initializer");
}

TEST(Onnx, RejectsBrokenMessages) {
  EXPECT_EQ(complaint(ErrorCode::Format, ""s), "has no graph");
  EXPECT_EQ(complaint(ErrorCode::Format, "\x08\x07\x12\xff"s), "ModelProto ends within a varint");
  EXPECT_EQ(complaint(ErrorCode::Format, "\x08\x07\x12\x05xyz"s),
            "ModelProto field 2 has 5 bytes, 3 are left");
  EXPECT_EQ(complaint(ErrorCode::Format, "\x08\x07\x12\0\x0b"s),
            "ModelProto field 1 has wire type 3, expected 0, 1, 2 or 5");
  EXPECT_EQ(complaint(ErrorCode::Format, "\x08\x07\x12\0\x01"s), "ModelProto has a field 0");
  const std::string long_varint(10, '\xff');
  EXPECT_EQ(complaint(ErrorCode::Format, "\x08\x07\x12\0\x08"s + long_varint),
            "ModelProto has a varint beyond 64 bits");
  EXPECT_EQ(complaint(ErrorCode::Format, "\x08\x07\x12\0\x08"s + std::string(9, '\xff') + '\2'),
            "ModelProto has a varint beyond 64 bits");
  EXPECT_EQ(complaint(ErrorCode::Format, "\x08\x07\x12"s + std::string(9, '\xff') + '\1'),
            "ModelProto field 2 has 18446744073709551615 bytes, 0 are left");
  EXPECT_EQ(complaint(ErrorCode::Format, OnnxFile().text() + "\x3a\0"s), "has two graphs, expected one");
  EXPECT_EQ(complaint(ErrorCode::Format, Proto().bytes(8, "w").bytes(2, "x")),
            "TensorProto field 2 has wire type 2, expected 0");
}

TEST(Onnx, RejectsEveryCutOffFile) {
  OnnxFile file;
  const std::string text = test::add_written_out_norm(file, {4}, -1).text();
  for (std::size_t size = 8; size < text.size(); ++size) {
    complaint(ErrorCode::Format, text.substr(0, size));
  }
}

TEST(Onnx, OpensMagika) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/magika_v3_3.onnx");
  const Checkpoint checkpoint(path);
  EXPECT_EQ(checkpoint.tensors().size(), 36u);
  const Tensor* kernel = checkpoint.find("jax2tf_get_logits_/pjit_get_logits_/MagikaV2/Conv_0/transpose_3:0");
  ASSERT_NE(kernel, nullptr);
  EXPECT_EQ(kernel->elements(), 512u * 256u * 5u);
  ASSERT_NE(checkpoint.graph(), nullptr);
  EXPECT_FALSE(checkpoint.graph()->nodes().empty());
}

}  // namespace
}  // namespace normscope::files
