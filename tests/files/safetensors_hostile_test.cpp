#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/safetensors.hpp>

#include "files/test_files.hpp"

namespace normscope::files {
namespace {

using test::as_bytes;
using test::safetensors_file;

/// The reader's error message for `file`, after "f: ".
std::string complaint(const std::string& file, ErrorCode code = ErrorCode::Format) {
  const std::string message = test::error_of(code, [&file] { (void)parse_safetensors(as_bytes(file), "f"); });
  EXPECT_EQ(message.substr(0, 3), "f: ");
  return message.size() > 3 ? message.substr(3) : "";
}

std::string header_complaint(const std::string& header, const std::string& data = "",
                             ErrorCode code = ErrorCode::Format) {
  return complaint(safetensors_file(header, data), code);
}

/// The reader's error message for one tensor named a with these fields.
std::string tensor_complaint(const std::string& fields, const std::string& data = "",
                             ErrorCode code = ErrorCode::Format) {
  return header_complaint("{\"a\":{" + fields + "}}", data, code);
}

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + rest;
}

TEST(SafetensorsHostile, RejectsFilesThatAreTooShort) {
  EXPECT_EQ(complaint(""), "file has 0 bytes, expected at least 8");
  EXPECT_EQ(complaint("1234567"), "file has 7 bytes, expected at least 8");
  EXPECT_EQ(complaint(with_length(0, "")), "header is empty, expected a JSON object");
}

TEST(SafetensorsHostile, RejectsATextFile) {
  EXPECT_EQ(complaint("This is a text file.\n"),
            "header length is 2338328219631577172, expected at most 100000000");
}

TEST(SafetensorsHostile, RejectsHeaderLengthsBeyondTheFile) {
  EXPECT_EQ(complaint(with_length(3, "{}")), "header ends at byte 11, file has 10");
  EXPECT_EQ(complaint(with_length(100'000'000, "{}")), "header ends at byte 100000008, file has 10");
  EXPECT_EQ(complaint(with_length(100'000'001, "{}")),
            "header length is 100000001, expected at most 100000000");
  EXPECT_EQ(complaint(with_length(std::numeric_limits<std::uint64_t>::max(), "{}")),
            "header length is 18446744073709551615, expected at most 100000000");
}

TEST(SafetensorsHostile, RejectsEveryCutOfASoundFile) {
  const std::string sound = test::one_tensor_file("a");
  for (std::size_t size = 0; size < sound.size(); ++size) complaint(sound.substr(0, size));
}

TEST(SafetensorsHostile, RejectsPaddedFiles) {
  EXPECT_EQ(complaint(test::one_tensor_file("a") + '\0'), "tensors end at byte 8, data has 9");
  EXPECT_EQ(header_complaint("{}", "x"), "tensors end at byte 0, data has 1");
}

TEST(SafetensorsHostile, ReadsWhiteSpaceAroundTheHeaderAsTheReferenceDoes) {
  for (const std::string white : {" ", "\n", "\t", "\r", "\r\n \t"}) {
    for (const std::string& header : {white + "{}", "{}" + white}) {
      const std::string file = safetensors_file(header);
      EXPECT_TRUE(parse_safetensors(as_bytes(file), "f").tensors.empty()) << header;
    }
  }
}

TEST(SafetensorsHostile, RejectsHeadersThatAreNotOneObject) {
  EXPECT_EQ(header_complaint(" []"), "header begins with byte 0x5b, expected '{'");
  EXPECT_EQ(header_complaint(" \n"), "header begins with byte 0x0a, expected '{'");
  EXPECT_EQ(header_complaint("[]"), "header begins with byte 0x5b, expected '{'");
  EXPECT_EQ(header_complaint("\xef\xbb\xbf{}"), "header begins with byte 0xef, expected '{'");
  EXPECT_EQ(header_complaint(std::string("{}\0", 3)),
            "header ends with byte 0x00, expected '}' and then only white space");
  EXPECT_EQ(header_complaint("{} {}"), "not one JSON object: syntax error at byte 4");
  EXPECT_EQ(header_complaint(std::string("{}\0}", 4)), "not one JSON object: syntax error at byte 3");
  EXPECT_EQ(header_complaint("{}}"), "not one JSON object: syntax error at byte 3");
  EXPECT_EQ(header_complaint("{{}}"), "not one JSON object: syntax error at byte 2");
  EXPECT_EQ(header_complaint("{\"a\":}"), "not one JSON object: syntax error at byte 6");
  EXPECT_EQ(header_complaint("{/**/}"), "not one JSON object: syntax error at byte 2");
}

TEST(SafetensorsHostile, RejectsStringsThatAreNotUtf8) {
  for (const char* bytes : {"\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\\ud800",
                            "\\udc00x", "\n", "\\q"}) {
    EXPECT_EQ(header_complaint("{\"" + std::string(bytes) + "\":{}}").substr(0, 33),
              "not one JSON object: syntax error")
        << bytes;
  }
}

TEST(SafetensorsHostile, RejectsNamesThatComeTwice) {
  const std::string tensor = R"({"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_EQ(header_complaint(R"({"a":)" + tensor + R"(,"b":)" + tensor + R"(,"\u0061":)" + tensor + "}"),
            "header has tensor \"a\" twice");
  EXPECT_EQ(header_complaint(R"({"__metadata__":{},"__metadata__":{}})"), "header has __metadata__ twice");
  EXPECT_EQ(header_complaint(R"({"__metadata__":{"k":"1","k":"2"}})"),
            "__metadata__ has the key \"k\" twice");
  EXPECT_EQ(tensor_complaint(R"("dtype":"U8","shape":[0],"data_offsets":[0,0],"dtype":"U8")"),
            "tensor \"a\" has dtype twice");
  EXPECT_EQ(tensor_complaint(R"("shape":[0],"shape":[0])"), "tensor \"a\" has shape twice");
  EXPECT_EQ(tensor_complaint(R"("data_offsets":[0,0],"data_offsets":[0,0])"),
            "tensor \"a\" has data_offsets twice");
}

TEST(SafetensorsHostile, RejectsOtherAndMissingKeys) {
  EXPECT_EQ(tensor_complaint(R"("dtype":"U8","shape":[0],"data_offsets":[0,0],"strides":[1])"),
            "tensor \"a\" has the key \"strides\", expected dtype, shape and data_offsets");
  EXPECT_EQ(tensor_complaint(""), "tensor \"a\" has no dtype");
  EXPECT_EQ(tensor_complaint(R"("dtype":"U8","data_offsets":[0,0])"), "tensor \"a\" has no shape");
  EXPECT_EQ(tensor_complaint(R"("dtype":"U8","shape":[0])"), "tensor \"a\" has no data_offsets");
}

TEST(SafetensorsHostile, RejectsValuesOfTheWrongKind) {
  EXPECT_EQ(header_complaint(R"({"a":1})"), "tensor \"a\" has 1, expected an object");
  EXPECT_EQ(header_complaint(R"({"a":[[[[]]]]})"), "tensor \"a\" has an array, expected an object");
  EXPECT_EQ(header_complaint(R"({"a":null})"), "tensor \"a\" has null, expected an object");
  EXPECT_EQ(header_complaint(R"({"a":"F32"})"), "tensor \"a\" has \"F32\", expected an object");
  EXPECT_EQ(tensor_complaint(R"("dtype":4)"), "dtype of tensor \"a\" has 4, expected a string");
  EXPECT_EQ(tensor_complaint(R"("dtype":{})"), "dtype of tensor \"a\" has an object, expected a string");
  EXPECT_EQ(tensor_complaint(R"("shape":4)"),
            "shape of tensor \"a\" has 4, expected an array of integers >= 0");
  EXPECT_EQ(tensor_complaint(R"("data_offsets":"0,4")"),
            "data_offsets of tensor \"a\" has \"0,4\", expected an array of two integers >= 0");
  EXPECT_EQ(header_complaint(R"({"__metadata__":null})"),
            "__metadata__ has null, expected an object of strings");
  EXPECT_EQ(header_complaint(R"({"__metadata__":{"k":1}})"),
            "__metadata__ entry \"k\" has 1, expected a string");
  EXPECT_EQ(header_complaint(R"({"__metadata__":{"k":{}}})"),
            "__metadata__ entry \"k\" has an object, expected a string");
}

TEST(SafetensorsHostile, RejectsUnknownDtypes) {
  for (const char* dtype : {"F128", "f32", "float32", "", "F32 "}) {
    EXPECT_EQ(tensor_complaint("\"dtype\":\"" + std::string(dtype) + "\""),
              "dtype of tensor \"a\" is \"" + std::string(dtype) +
                  "\", expected a dtype of the format such as F32");
  }
}

TEST(SafetensorsHostile, RejectsExtentsThatAreNotPlainIntegers) {
  for (const char* number : {"-1", "1.0", "1e3", "true", "false", "null", "18446744073709551616"}) {
    EXPECT_EQ(tensor_complaint("\"shape\":[" + std::string(number) + "]"),
              "shape of tensor \"a\" has " + std::string(number) + ", expected an array of integers >= 0");
  }
  EXPECT_EQ(tensor_complaint(R"("shape":[-0])"),
            "shape of tensor \"a\" has 0, expected an array of integers >= 0");
  EXPECT_EQ(tensor_complaint(R"("shape":[[1]])"),
            "shape of tensor \"a\" has an array, expected an array of integers >= 0");
  EXPECT_EQ(tensor_complaint(R"("shape":[01])").substr(0, 33), "not one JSON object: syntax error");
}

TEST(SafetensorsHostile, RejectsOffsetsThatAreNotAPair) {
  EXPECT_EQ(tensor_complaint(R"("data_offsets":[])"),
            "data_offsets of tensor \"a\" has length 0, expected [begin, end]");
  EXPECT_EQ(tensor_complaint(R"("data_offsets":[0])"),
            "data_offsets of tensor \"a\" has length 1, expected [begin, end]");
  EXPECT_EQ(tensor_complaint(R"("data_offsets":[0,1,2])"),
            "data_offsets of tensor \"a\" has more than two numbers, expected [begin, end]");
  EXPECT_EQ(tensor_complaint(R"("data_offsets":[0,-1])"),
            "data_offsets of tensor \"a\" has -1, expected an array of two integers >= 0");
}

TEST(SafetensorsHostile, RejectsOffsetsOutsideTheData) {
  EXPECT_EQ(tensor_complaint(R"("dtype":"U8","shape":[4],"data_offsets":[0,4])", "123"),
            "tensor \"a\" ends at byte 4, data has 3");
  EXPECT_EQ(tensor_complaint(R"("dtype":"U8","shape":[4],"data_offsets":[4,0])", "1234"),
            "tensor \"a\" begins at byte 4 and ends at byte 0");
  EXPECT_EQ(tensor_complaint(R"("dtype":"U8","shape":[1],"data_offsets":[18446744073709551615,0])", "1"),
            "tensor \"a\" begins at byte 18446744073709551615 and ends at byte 0");
  EXPECT_EQ(tensor_complaint(
                R"("dtype":"U8","shape":[1],"data_offsets":[18446744073709551614,18446744073709551615])"),
            "tensor \"a\" ends at byte 18446744073709551615, data has 0");
}

TEST(SafetensorsHostile, RejectsSizesThatDisagreeWithTheShape) {
  EXPECT_EQ(
      tensor_complaint(R"("dtype":"F32","shape":[2],"data_offsets":[0,7])", "1234567", ErrorCode::Shape),
      "tensor \"a\" has 7 bytes, expected 8 for 2 elements of F32");
  EXPECT_EQ(tensor_complaint(R"("dtype":"F32","shape":[],"data_offsets":[0,0])", "", ErrorCode::Shape),
            "tensor \"a\" has 0 bytes, expected 4 for 1 elements of F32");
  // A rank of 8, which other readers have handled wrongly.
  EXPECT_EQ(tensor_complaint(R"("dtype":"U8","shape":[1,1,1,1,1,1,1,2],"data_offsets":[0,1])", "1",
                             ErrorCode::Shape),
            "tensor \"a\" has 1 bytes, expected 2 for 2 elements of U8");
}

TEST(SafetensorsHostile, RejectsSizesThatOverflow) {
  const std::string message = "size of tensor \"a\" overflows 64 bits";
  EXPECT_EQ(tensor_complaint(R"("dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0])", "",
                             ErrorCode::Shape),
            message);
  EXPECT_EQ(tensor_complaint(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0])", "",
                             ErrorCode::Shape),
            message);
  EXPECT_EQ(tensor_complaint(R"("dtype":"U8","shape":[4294967296,4294967296,0],"data_offsets":[0,0])", "",
                             ErrorCode::Shape),
            message);
}

TEST(SafetensorsHostile, RejectsSubByteTensorsThatDoNotEndOnAByte) {
  EXPECT_EQ(tensor_complaint(R"("dtype":"F4","shape":[3],"data_offsets":[0,2])", "12", ErrorCode::Shape),
            "tensor \"a\" has 3 elements of F4, which do not end on a byte");
  EXPECT_EQ(tensor_complaint(R"("dtype":"F6_E2M3","shape":[2],"data_offsets":[0,2])", "12", ErrorCode::Shape),
            "tensor \"a\" has 2 elements of F6_E2M3, which do not end on a byte");
}

TEST(SafetensorsHostile, RejectsOverlapsAndHoles) {
  EXPECT_EQ(
      header_complaint(
          R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
          "1234"),
      "tensor \"b\" begins at byte 2, expected 3, where the one before ends (overlap)");
  EXPECT_EQ(
      header_complaint(
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
          "1234"),
      "tensor \"b\" begins at byte 2, expected 1, where the one before ends (hole)");
  EXPECT_EQ(header_complaint(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "12"),
            "tensor \"a\" begins at byte 1, expected 0, where the one before ends (hole)");
  EXPECT_EQ(
      header_complaint(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
          "12"),
      "tensor \"b\" begins at byte 0, expected 2, where the one before ends (overlap)");
  // An empty tensor inside another one.
  EXPECT_EQ(
      header_complaint(
          R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"e":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}})",
          "12"),
      "tensor \"e\" begins at byte 1, expected 2, where the one before ends (overlap)");
}

TEST(SafetensorsHostile, SurvivesDeepNesting) {
  const std::string open(60'000, '[');
  EXPECT_EQ(header_complaint("{\"a\":" + open + "}"), "tensor \"a\" has an array, expected an object");
  std::string objects = "{";
  for (int i = 0; i < 100'000; ++i) objects += "\"a\":{";
  EXPECT_EQ(header_complaint(objects + "}"),
            "tensor \"a\" has the key \"a\", expected dtype, shape and data_offsets");
}

TEST(SafetensorsHostile, BoundsItsMemory) {
  std::string entries = "\"\":\"\"";
  for (int i = 0; i < 250'000; ++i) entries += ",\"\":\"\"";
  const std::string message =
      header_complaint(R"({"__metadata__":{)" + entries + "}}", "", ErrorCode::Unsupported);
  EXPECT_EQ(message.rfind("the list of tensors in the header needs more than ", 0), 0u) << message;
}

TEST(SafetensorsHostile, BoundsItsTokens) {
  const std::string letters((std::size_t{4} << 20) + 1, 'x');
  EXPECT_EQ(header_complaint("{\"" + letters + "\":{}}", "", ErrorCode::Unsupported),
            "header has a string of more than 4194304 bytes at byte 1");
  EXPECT_EQ(header_complaint("{\"a\":" + std::string(70'000, ' ') + "{}}", "", ErrorCode::Unsupported),
            "header has more than 65536 bytes without a string or comma at byte 3");
  EXPECT_EQ(tensor_complaint("\"shape\":[" + std::string(70'000, '1') + "]", "", ErrorCode::Unsupported),
            "header has more than 65536 bytes without a string or comma at byte 12");
}

TEST(SafetensorsHostile, NamesFitOneLine) {
  EXPECT_EQ(header_complaint("{\"a\\nb\\u001b" + std::string(200, 'x') + "\":{}}"),
            "tensor \"a\\x0ab\\x1b" + std::string(96, 'x') + "...\" has no dtype");
}

}  // namespace
}  // namespace normscope::files
