#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>

#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::checkpoint {
namespace {

using namespace std::string_literals;

std::string flax_byte(std::size_t value) { return {static_cast<char>(value)}; }
std::string flax_text(const std::string& text) { return flax_byte(0xa0 + text.size()) + text; }
std::string flax_map(std::size_t entries, const std::string& body) {
  return flax_byte(0x80 + entries) + body;
}
std::string flax_elements(const std::string& dtype, const std::string& shape, const std::string& data) {
  return "\x93" + shape + flax_text(dtype) + "\xc4" + flax_byte(data.size()) + data;
}
std::string flax_array(const std::string& dtype, const std::string& shape, const std::string& data) {
  const std::string body = flax_elements(dtype, shape, data);
  return "\xc7" + flax_byte(body.size()) + "\x01" + body;
}

/// A big-endian number.
std::string flax_number(std::size_t width, std::size_t value) {
  std::string bytes(width, '\0');
  for (std::size_t i = width; i-- > 0; value >>= 8U) bytes[i] = static_cast<char>(value);
  return bytes;
}

const std::string one_two = "\0\0\x80\x3f\0\0\0\x40"s;

Checkpoint flax_of(const std::string& file) {
  const test::Scratch scratch;
  test::put(scratch / "m.msgpack", file);
  return Checkpoint(scratch / "m.msgpack");  // the mapping outlives the file's name
}

std::string flax_complaint(ErrorCode code, const std::string& file) {
  const std::string message = test::error_of(code, [&file] { (void)flax_of(file); });
  const std::size_t name = message.find("m.msgpack: ");
  return message.rfind("flax: ", 0) == 0 && name != std::string::npos ? message.substr(name + 11) : message;
}

TEST(Flax, NamesArraysByTheirKeysAndPassesOverOtherValues) {
  const std::string norm =
      flax_map(2, flax_text("scale") + flax_array("float32", "\x91\x02", one_two) + flax_text("bias") +
                      flax_array("float16", "\x92\x01\xcd\0\1"s, "\0\x3c"s));
  const std::string others = flax_text("step") + "\xd2\0\0\0\1"s + flax_text("list") + "\x92\xc0\xcb" +
                             "12345678" + flax_text("none") + "\xc0" + flax_text("bytes") + "\xc4\1x";
  const Checkpoint checkpoint = flax_of(flax_map(
      6, flax_text("ln_f") + norm + others + flax_text("w") + flax_array("bfloat16", "\x90", "\x80\x3f")));
  EXPECT_EQ(checkpoint.format(), "flax");
  ASSERT_EQ(checkpoint.tensors().size(), 3u);
  EXPECT_EQ(read(*checkpoint.find("ln_f.scale")), (std::vector<double>{1, 2}));
  EXPECT_EQ(read(*checkpoint.find("ln_f.bias")), (std::vector<double>{1}));
  EXPECT_EQ(checkpoint.find("ln_f.bias")->shape.size(), 2u);
  EXPECT_EQ(read(*checkpoint.find("w")), (std::vector<double>{1}));
}

TEST(Flax, PassesOverValuesOfEveryKind) {
  const std::vector<std::string> values = {
      // numbers
      "\xc2", "\xc3", "\xff", "\x05", "\xca" + flax_number(4, 1), "\xcb" + flax_number(8, 1),
      "\xcc" + flax_number(1, 1), "\xcd" + flax_number(2, 1), "\xce" + flax_number(4, 1),
      "\xcf" + flax_number(8, 1), "\xd0" + flax_number(1, 1), "\xd1" + flax_number(2, 1),
      "\xd2" + flax_number(4, 1), "\xd3" + flax_number(8, 1),
      // bytes and text
      "\xc5" + flax_number(2, 3) + "abc", "\xc6" + flax_number(4, 1) + "a", "\xd9\1a",
      "\xda" + flax_number(2, 1) + "a", "\xdb" + flax_number(4, 1) + "a",
      // extensions of a type that holds no tensor
      "\xc7\1\2x", "\xc8" + flax_number(2, 1) + "\2x", "\xc9" + flax_number(4, 1) + "\2x", "\xd4\2x",
      "\xd5\2xx", "\xd6\2" + std::string(4, 'x'), "\xd7\2" + std::string(8, 'x'),
      "\xd8\2" + std::string(16, 'x'),
      // lists and maps
      "\xdc" + flax_number(2, 1) + "\x81\1\2", "\xdd" + flax_number(4, 2) + flax_text("a") + "\xc4\1b",
      "\xdf" + flax_number(4, 1) + flax_text("k") + "\1"};
  std::string file = "\xde" + flax_number(2, values.size() + 1);
  for (std::size_t i = 0; i < values.size(); ++i) file += flax_text("v" + std::to_string(i)) + values[i];
  const Checkpoint checkpoint = flax_of(file + flax_text("w") + flax_array("float32", "\x91\x02", one_two));
  ASSERT_EQ(checkpoint.tensors().size(), 1u);
  EXPECT_EQ(read(*checkpoint.find("w")), (std::vector<double>{1, 2}));
}

TEST(Flax, ReadsNumbersOfNumpyAsTensors) {
  // An extension of 16 bytes and type 3.
  const std::string number = "\xd8\3" + flax_elements("float32", "\x90", one_two.substr(4));
  EXPECT_EQ(read(*flax_of(flax_map(1, flax_text("lr") + number)).find("lr")), std::vector<double>{2});
}

TEST(Flax, OpensInAFolderWithItsConfiguration) {
  const test::Scratch scratch;
  test::put(scratch / "flax_model.msgpack",
            flax_map(1, flax_text("w") + flax_array("float32", "\x91\x02", one_two)));
  test::put(scratch / "config.json", "{}");
  const Checkpoint checkpoint(scratch.folder());
  EXPECT_NE(checkpoint.find("w"), nullptr);
  EXPECT_EQ(checkpoint.config_text(), "{}");
}

TEST(Flax, RefusesDamage) {
  const auto with = [](const std::string& value) { return flax_map(1, flax_text("w") + value); };
  const std::string good = with(flax_array("float32", "\x91\x02", one_two));
  for (std::size_t size = 1; size < good.size(); ++size) {
    EXPECT_NE(flax_complaint(ErrorCode::Format, good.substr(0, size)), "") << size;
  }
  EXPECT_EQ(flax_complaint(ErrorCode::Format, good + "x"), "has 1 bytes after its map");
  EXPECT_EQ(flax_complaint(ErrorCode::Format, "\x91\xc0"),
            "does not begin with a map, expected a map of named arrays");
  EXPECT_EQ(flax_complaint(ErrorCode::Format, with("\xc1")), "byte 3 is 0xc1, which begins no value");
  EXPECT_EQ(flax_complaint(ErrorCode::Format, "\x81\1\1"), "at byte 1: a key is not text");
  EXPECT_EQ(flax_complaint(ErrorCode::Shape, with(flax_array("float32", "\x91\x03", one_two))),
            "tensor \"w\" has 8 bytes, expected 12 for 3 elements of F32");
  EXPECT_EQ(flax_complaint(ErrorCode::Unsupported, with(flax_array("str64", "\x91\x02", one_two))),
            "tensor \"w\" has dtype \"str64\", which is not known");
  EXPECT_EQ(flax_complaint(ErrorCode::Format, with(flax_array("float32", "\x91\xff", one_two))),
            "tensor \"w\" has a shape that is not of whole numbers");
  EXPECT_EQ(flax_complaint(ErrorCode::Format, with("\xc7\1\1\x93\x90")),
            "at byte 8: 1 bytes are needed, 0 are left");
  EXPECT_EQ(flax_complaint(ErrorCode::Unsupported,
                           with(flax_map(1, flax_text("__msgpack_chunked_array__") + "\xc3"))),
            "tensor \"w\" is stored in chunks, which are not read; export it to safetensors");
  std::string deep;
  for (int i = 0; i < 70; ++i) {
    deep +=
        "\x81\xa1"
        "d";
  }
  EXPECT_EQ(flax_complaint(ErrorCode::Unsupported, deep + "\1"), "is nested deeper than 64 levels");
}

TEST(Flax, RefusesExtensionsThatAreNoTensors) {
  const auto with = [](const std::string& body, std::size_t size) {
    return flax_map(1, flax_text("w") + "\xc7" + flax_byte(size) + "\x01" + body);
  };
  const auto refused = [&with](ErrorCode code, const std::string& body) {
    return flax_complaint(code, with(body, body.size()));
  };
  const std::string incomplete = "tensor \"w\" has no shape, dtype and elements";
  EXPECT_EQ(refused(ErrorCode::Format, "\x83\x91\2"), incomplete);
  EXPECT_EQ(refused(ErrorCode::Format, "\x92\x91\2"), incomplete);
  EXPECT_EQ(refused(ErrorCode::Format, "\x93\2\2"), incomplete);
  EXPECT_EQ(refused(ErrorCode::Unsupported, "\x93\xdc" + flax_number(2, 65)),
            "tensor \"w\" has 65 dimensions, expected at most 64");
  // What PyTorch's pickles may name, but no dtype.
  EXPECT_EQ(refused(ErrorCode::Unsupported, flax_elements("FloatStorage", "\x91\2", one_two)),
            "tensor \"w\" has dtype \"FloatStorage\", which is not known");
  EXPECT_EQ(refused(ErrorCode::Format, "\x93\x91\2\3"), "at byte 9: a dtype is not text");
  EXPECT_EQ(refused(ErrorCode::Format, "\x93\x91\2" + flax_text("int8") + flax_text("ab")),
            "tensor \"w\" has no binary elements");
  const std::string body = flax_elements("float32", "\x91\2", one_two);
  EXPECT_EQ(flax_complaint(ErrorCode::Format, with(body, body.size() + 1)),
            "tensor \"w\" takes 21 bytes, its extension has 22");
}

}  // namespace
}  // namespace normscope::checkpoint
