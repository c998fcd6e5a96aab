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

}  // namespace
}  // namespace normscope::checkpoint
