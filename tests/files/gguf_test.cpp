#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/array.hpp>
#include <normscope/files/checkpoint.hpp>

#include "files/gguf_files.hpp"
#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::files {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using test::GgufFile;
using test::le;
using Values = std::vector<double>;

Checkpoint gguf_of(const std::string& file) {
  const test::Scratch scratch;
  test::put(scratch / "m.gguf", file);
  return Checkpoint(scratch / "m.gguf");  // the mapping outlives the file's name
}

/// The error message about a file, without the file's name at its start.
std::string gguf_complaint(ErrorCode code, const std::string& file) {
  const std::string message = test::error_of(code, [&file] { (void)gguf_of(file); });
  const std::size_t name = message.find("m.gguf: ");
  return message.rfind("gguf: ", 0) == 0 && name != std::string::npos ? message.substr(name + 8) : message;
}
std::string gguf_complaint(ErrorCode code, const GgufFile& file) { return gguf_complaint(code, file.file()); }

fs::path fixture(const std::string& name) {
  return fs::path(NORMSCOPE_SOURCE_DIR) / "tests/files/fixtures" / name;
}

TEST(Gguf, ReadsTensorsOfPlainElements) {
  for (const std::uint32_t version : {2u, 3u}) {
    GgufFile file;
    file.version = version;
    file.floats("b", {2, 3}).tensor("a", {2}, 1, le(std::uint16_t{0x3c00}) + le(std::uint16_t{0xc000}));
    file.tensor("c", {2}, 30, le(std::uint16_t{0x3f80}) + le(std::uint16_t{0xc000}));
    file.tensor("d", {1, 1, 1, 1}, 28, le(0.1)).tensor("e", {}, 24, "\xff").tensor("f", {0, 32}, 2, "");
    file.tensor("i16", {1}, 25, le(std::int16_t{-2})).tensor("i32", {1}, 26, le(std::int32_t{-3}));
    file.tensor("i64", {1}, 27, le(std::int64_t{-4}));
    const Checkpoint checkpoint = gguf_of(file.file());
    EXPECT_EQ(checkpoint.format(), "gguf");
    ASSERT_EQ(checkpoint.tensors().size(), 9u);
    EXPECT_EQ(checkpoint.tensors()[0].name, "a");
    EXPECT_EQ(read(*checkpoint.find("a")), (Values{1, -2}));
    EXPECT_EQ(read(*checkpoint.find("b")), (Values{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(checkpoint.find("b")->shape[0], 2u);
    EXPECT_EQ(read(*checkpoint.find("c")), (Values{1, -2}));
    EXPECT_EQ(read(*checkpoint.find("d")), Values{0.1});
    EXPECT_EQ(read(*checkpoint.find("e")), Values{-1});
    EXPECT_EQ(read(*checkpoint.find("f")), Values{});
    EXPECT_EQ(read(*checkpoint.find("i16")), Values{-2});
    EXPECT_EQ(read(*checkpoint.find("i32")), Values{-3});
    EXPECT_EQ(read(*checkpoint.find("i64")), Values{-4});
    EXPECT_EQ(checkpoint.find("b")->stored_type(), "F32");
    EXPECT_EQ(checkpoint.find("b")->stored_bytes(), 24u);
  }
}

TEST(Gguf, ReadsMetadata) {
  GgufFile file;
  file.text("text", "x \"y\"").number("u32", 7).real("f32", 1e-6f).entry("bool", 7, "\1");
  file.entry("u8", 0, "\xff").entry("i8", 1, "\xff").entry("u16", 2, le(std::uint16_t{65535}));
  file.entry("i16", 3, le(std::int16_t{-1})).entry("i32", 5, le(std::int32_t{-5}));
  file.entry("u64", 10, le(~std::uint64_t{0}))
      .entry("i64", 11, le(std::int64_t{-1}))
      .entry("f64", 12, le(0.5));
  file.entry("list", 9, le(5u) + le(std::uint64_t{2}) + le(3) + le(-4));
  file.entry("texts", 9, le(8u) + le(std::uint64_t{2}) + GgufFile::counted("a") + GgufFile::counted(""));
  file.entry("no", 7, "\0"s).entry("i8s", 9, le(1u) + le(std::uint64_t{2}) + "\1\xff");
  file.entry("bools", 9, le(7u) + le(std::uint64_t{2}) + "\0\1"s);
  file.entry("i16s", 9, le(3u) + le(std::uint64_t{1}) + le(std::int16_t{-2}));
  file.entry("u16s", 9, le(2u) + le(std::uint64_t{1}) + le(std::uint16_t{2}));
  file.entry("u32s", 9, le(4u) + le(std::uint64_t{1}) + le(7u));
  file.entry("f32s", 9, le(6u) + le(std::uint64_t{1}) + le(0.5F));
  file.entry("u64s", 9, le(10u) + le(std::uint64_t{0}));
  file.entry("i64s", 9, le(11u) + le(std::uint64_t{1}) + le(std::int64_t{-1}));
  file.entry("f64s", 9, le(12u) + le(std::uint64_t{1}) + le(0.25));
  file.entry("long", 9, le(0u) + le(std::uint64_t{5000}) + std::string(5000, '\0'));
  const Checkpoint checkpoint = gguf_of(file.file());
  const std::map<std::string, std::string, std::less<>> expected = {{"text", "x \"y\""},
                                                                    {"u32", "7"},
                                                                    {"f32", "1e-06"},
                                                                    {"bool", "true"},
                                                                    {"u8", "255"},
                                                                    {"i8", "-1"},
                                                                    {"u16", "65535"},
                                                                    {"i16", "-1"},
                                                                    {"i32", "-5"},
                                                                    {"u64", "18446744073709551615"},
                                                                    {"i64", "-1"},
                                                                    {"f64", "0.5"},
                                                                    {"no", "false"},
                                                                    {"i8s", "[1,-1]"},
                                                                    {"bools", "[false,true]"},
                                                                    {"i16s", "[-2]"},
                                                                    {"u16s", "[2]"},
                                                                    {"u32s", "[7]"},
                                                                    {"f32s", "[0.5]"},
                                                                    {"u64s", "[]"},
                                                                    {"i64s", "[-1]"},
                                                                    {"f64s", "[0.25]"},
                                                                    {"list", "[3,-4]"},
                                                                    {"texts", "an array of 2 strings"},
                                                                    {"long", "an array of 5000 numbers"}};
  EXPECT_EQ(checkpoint.metadata(), expected);
  EXPECT_EQ(checkpoint.tensors().size(), 0u);
}

TEST(Gguf, AlignsData) {
  GgufFile file;
  file.alignment = 64;
  file.number("general.alignment", 64).floats("a", {3}).floats("b", {2});
  EXPECT_EQ(read(*gguf_of(file.file()).find("b")), (Values{1, 2}));
  for (const char* bad : {"0", "48", "", "4294967296", "32 "}) {
    EXPECT_EQ(gguf_complaint(ErrorCode::Format, GgufFile().text("general.alignment", bad)),
              "general.alignment is \"" + std::string(bad) + "\", expected a power of 2");
  }
}

// Expected values: gguf.quants.dequantize of PyPI's gguf (scripts/gguf_oracle).
TEST(Gguf, DecodesBlocksAsGgmlDoes) {
  const Checkpoint blocks(fixture("blocks.gguf"));
  const Checkpoint expected(fixture("blocks.safetensors"));
  ASSERT_EQ(blocks.tensors().size(), 13u);
  for (const Tensor& tensor : blocks.tensors()) {
    const Tensor* const decoded = expected.find(tensor.name);
    ASSERT_NE(decoded, nullptr) << tensor.name;
    EXPECT_EQ(tensor.stored_type(), tensor.name);
    EXPECT_EQ(tensor.dtype, Dtype::F32);
    ASSERT_EQ(std::vector(tensor.shape.begin(), tensor.shape.end()),
              std::vector(decoded->shape.begin(), decoded->shape.end()));
    EXPECT_TRUE(equal(tensor.bytes, decoded->bytes)) << tensor.name;
    EXPECT_LT(tensor.stored_bytes(), decoded->bytes.size() / 3);
  }
}

RC_GTEST_PROP(Gguf, DecodesAnyPartOfATensor, ()) {
  const Checkpoint blocks(fixture("blocks.gguf"));
  const Checkpoint ranged(fixture("blocks.gguf"), files::read_file);
  const std::span<const Tensor> tensors = blocks.tensors();
  const auto index = *rc::gen::inRange<std::size_t>(0, tensors.size());
  const Values all = read(tensors[index]);
  const auto first = *rc::gen::inRange<std::size_t>(0, all.size() + 1);
  const auto count = *rc::gen::inRange<std::size_t>(0, all.size() - first + 1);
  const Values part(all.begin() + static_cast<std::ptrdiff_t>(first),
                    all.begin() + static_cast<std::ptrdiff_t>(first + count));
  RC_ASSERT(read(tensors[index], first, count) == part);
  RC_ASSERT(read(ranged.tensors()[index], first, count) == part);
  RC_ASSERT(std::all_of(part.begin(), part.end(), [](double value) { return std::isfinite(value); }));
}

TEST(Gguf, ReadsARowOfATensorOfBlocks) {
  EXPECT_EQ(read_array(fixture("blocks.gguf").string() + ":Q4_K[1]").values,
            read(*Checkpoint(fixture("blocks.gguf")).find("Q4_K"), 256, 256));
}

TEST(Gguf, DecodesMoreBlocksThanItHoldsAtATime) {
  std::string data;
  Values expected;
  for (int block = 0; block < 200; ++block) {
    data += le(std::uint16_t{0x3c00});  // 1
    for (int i = 0; i < 32; ++i) data += static_cast<char>(block % 100 + i - 20);
    for (int i = 0; i < 32; ++i) expected.push_back(block % 100 + i - 20);
  }
  EXPECT_EQ(read(*gguf_of(GgufFile().tensor("a", {100, 64}, 8, data).file()).find("a")), expected);
}

TEST(Gguf, NamesTypesThatItDoesNotDecode) {
  const Checkpoint checkpoint =
      gguf_of(GgufFile().tensor("a", {256}, 16, std::string(66, 'x')).floats("b", {1}).file());
  EXPECT_EQ(checkpoint.find("a")->stored_type(), "IQ2_XXS");
  EXPECT_EQ(checkpoint.find("a")->stored_bytes(), 66u);
  EXPECT_FALSE(checkpoint.find("a")->is_decodable());
  EXPECT_EQ(test::error_of(ErrorCode::Unsupported, [&] { (void)read(*checkpoint.find("a")); }),
            "read: tensor \"a\" is IQ2_XXS, which has no decoder");
  EXPECT_EQ(read(*checkpoint.find("b")), Values{1});
  EXPECT_EQ(gguf_complaint(ErrorCode::Unsupported, GgufFile().tensor("a", {32}, 4, "")),
            "tensor \"a\" has type 4, which is not known");
}

TEST(Gguf, RejectsOtherVersions) {
  GgufFile file;
  file.version = 1;
  EXPECT_EQ(gguf_complaint(ErrorCode::Unsupported, file), "has version 1, expected 2 or 3");
  file.version = 0;
  EXPECT_EQ(gguf_complaint(ErrorCode::Unsupported, file), "has version 0, expected 2 or 3");
  file.version = 4;
  EXPECT_EQ(gguf_complaint(ErrorCode::Unsupported, file), "has version 4, expected 2 or 3");
  file.version = 0x03000000;
  EXPECT_EQ(gguf_complaint(ErrorCode::Unsupported, file), "is a big-endian file, expected little-endian");
}

TEST(Gguf, RejectsBrokenHeaders) {
  const std::string whole = GgufFile().text("k", "value").floats("a", {2}).header();
  for (std::size_t size = 4; size < whole.size(); ++size) {
    EXPECT_NE(gguf_complaint(ErrorCode::Format, whole.substr(0, size)).find(" bytes are needed, "),
              std::string::npos);
  }
  EXPECT_EQ(gguf_complaint(ErrorCode::Format, whole), "tensor \"a\" ends at byte 8 of the data, which has 0");
  const std::string counts = "GGUF"s + le(3u);
  EXPECT_EQ(gguf_complaint(ErrorCode::Format, counts + le(~std::uint64_t{0}) + le(std::uint64_t{0})),
            "at byte 24: 8 bytes are needed, 0 are left");
  EXPECT_EQ(gguf_complaint(ErrorCode::Format, "GGML" + whole.substr(4)), "does not begin with GGUF");
  EXPECT_EQ(gguf_complaint(ErrorCode::Format, counts + le(std::uint64_t{0}) + le(std::uint64_t{1}) +
                                                  le(std::uint64_t{1} << 40U)),
            "at byte 32: 1099511627776 bytes are needed, 0 are left");
  EXPECT_EQ(gguf_complaint(ErrorCode::Format, GgufFile().text("k", "").text("k", "")),
            "has metadata \"k\" twice");
  EXPECT_EQ(gguf_complaint(ErrorCode::Unsupported, GgufFile().entry("k", 13, "")),
            "metadata \"k\" has a value of type 13, which is not known");
  // An array of arrays.
  EXPECT_EQ(gguf_complaint(ErrorCode::Unsupported, GgufFile().entry("k", 9, le(9u) + le(std::uint64_t{1}))),
            "metadata \"k\" has a value of type 9, which is not known");
  for (const std::uint32_t type : {8u, 10u}) {
    const std::string huge = le(type) + le(~std::uint64_t{0});
    EXPECT_NE(gguf_complaint(ErrorCode::Format, GgufFile().entry("k", 9, huge)).find(" bytes are needed, "),
              std::string::npos);
  }
  EXPECT_EQ(gguf_complaint(ErrorCode::Unsupported, GgufFile().text("k", std::string((16u << 20) + 1, 'x'))),
            "metadata \"k\" has 16777217 bytes, expected at most 16777216");
}

TEST(Gguf, RejectsTensorsThatCannotBe) {
  const std::uint64_t huge = std::uint64_t{1} << 63;
  EXPECT_EQ(gguf_complaint(ErrorCode::Format, GgufFile().tensor("a", {1, 1, 1, 1, 1}, 0, "1234")),
            "tensor \"a\" has 5 dimensions, expected at most 4");
  EXPECT_EQ(gguf_complaint(ErrorCode::Shape, GgufFile().tensor("a", {huge, 2}, 0, "")),
            "size of tensor \"a\" overflows 64 bits");
  EXPECT_EQ(gguf_complaint(ErrorCode::Shape, GgufFile().tensor("a", {huge}, 0, "")),
            "size of tensor \"a\" overflows 64 bits");
  EXPECT_EQ(gguf_complaint(ErrorCode::Shape, GgufFile().tensor("a", {~std::uint64_t{0}}, 24, "")),
            "size of tensor \"a\" overflows 64 bits");
  EXPECT_EQ(gguf_complaint(ErrorCode::Shape, GgufFile().tensor("a", {2, 40}, 2, "")),
            "tensor \"a\" has rows of 40, expected a multiple of 32, the blocks of Q4_0");
  EXPECT_EQ(gguf_complaint(ErrorCode::Format, GgufFile().tensor("a", {3}, 0, "12345678")),
            "tensor \"a\" ends at byte 12 of the data, which has 8");
  EXPECT_EQ(gguf_complaint(ErrorCode::Format, GgufFile().floats("a", {1}).tensor_at(32, "b", {1}, 0, "")),
            "tensor \"b\" ends at byte 36 of the data, which has 4");
  EXPECT_EQ(gguf_complaint(ErrorCode::Shape,
                           GgufFile().tensor_at(0, "a", {huge}, 24, "").tensor_at(huge, "b", {huge}, 24, "")),
            "size of tensor \"b\" overflows 64 bits");
  EXPECT_EQ(gguf_complaint(ErrorCode::Format, GgufFile().floats("a", {1}).floats("a", {1})),
            "has tensor \"a\" twice");
  // Tensors follow each other, so that none overlaps another.
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{64}, huge}) {
    EXPECT_EQ(
        gguf_complaint(ErrorCode::Format, GgufFile().floats("a", {1}).tensor_at(offset, "b", {1}, 0, "1234")),
        "tensor \"b\" begins at byte " + std::to_string(offset) +
            " of the data, expected 32, after the one before it");
  }
}

/// A folder with a model of two parts.
class GgufParts : public testing::Test {
 protected:
  GgufParts() {
    write(1, part(0, 2).floats("b", {1}));
    write(2, part(1, 2).floats("a", {2}));
  }
  static GgufFile part(std::uint16_t number, std::uint16_t count) {
    GgufFile file;
    file.entry("split.no", 2, le(number)).entry("split.count", 2, le(count));
    return file;
  }
  [[nodiscard]] fs::path path(int number) const {
    return scratch_ / ("m-0000" + std::to_string(number) + "-of-00002.gguf");
  }
  void write(int number, const GgufFile& file) const { test::put(path(number), file.file()); }
  [[nodiscard]] std::string complaint(ErrorCode code, const fs::path& file) const {
    return test::error_of(code, [&file] { const Checkpoint checkpoint(file); });
  }

  test::Scratch scratch_;
};

TEST_F(GgufParts, AreOneModel) {
  for (const fs::path& given : {scratch_.folder(), path(1), path(2)}) {
    const Checkpoint checkpoint(given);
    ASSERT_EQ(checkpoint.tensors().size(), 2u);
    EXPECT_EQ(checkpoint.tensors()[0].name, "a");
    EXPECT_EQ(checkpoint.files(), (std::vector<fs::path>{path(1), path(2)}));
    EXPECT_EQ(checkpoint.file_of(*checkpoint.find("a")), path(2));
    EXPECT_EQ(checkpoint.file_of(*checkpoint.find("b")), path(1));
    EXPECT_EQ(read(*checkpoint.find("a")), (Values{1, 2}));
    EXPECT_EQ(checkpoint.metadata().at("split.no"), "0");
  }
}

TEST_F(GgufParts, MustBelongTogether) {
  EXPECT_EQ(Checkpoint(path(1)).tensors().size(), 2u);
  write(2, part(0, 2));
  EXPECT_EQ(
      complaint(ErrorCode::Format, path(1)),
      "gguf: " + path(2).string() + ": is part 1 of 2, expected a name that ends with -00001-of-00002.gguf");
  write(2, GgufFile());
  EXPECT_EQ(complaint(ErrorCode::Format, path(1)),
            "gguf: " + path(2).string() + ": is not a part of the model of " + path(1).string());
  write(2, part(1, 2).floats("b", {2}));
  EXPECT_EQ(complaint(ErrorCode::Format, path(1)), "gguf: " + path(1).string() + ": has tensor \"b\" twice");
  fs::remove(path(2));
  EXPECT_EQ(complaint(ErrorCode::Io, path(1)),
            "file: " + path(2).string() + ": cannot be opened: No such file or directory");
  fs::rename(path(1), scratch_ / "renamed.gguf");
  EXPECT_EQ(complaint(ErrorCode::Format, scratch_ / "renamed.gguf"),
            "gguf: " + (scratch_ / "renamed.gguf").string() +
                ": is part 1 of 2, expected a name that ends with -00001-of-00002.gguf");
}

TEST_F(GgufParts, HaveTheNumberOfPartsInTheirNames) {
  fs::rename(path(1), scratch_ / "m-00001-of-00003.gguf");
  EXPECT_EQ(complaint(ErrorCode::Format, scratch_ / "m-00001-of-00003.gguf"),
            "gguf: " + (scratch_ / "m-00001-of-00003.gguf").string() +
                ": is part 1 of 2, expected a name that ends with -00001-of-00002.gguf");
}

TEST_F(GgufParts, HaveNoMembers) {
  EXPECT_EQ(complaint(ErrorCode::Argument, path(1).string() + ":model"),
            "checkpoint: " + path(1).string() + ": has no members, found the name of one, \"model\"");
}

TEST(Gguf, IsOneFileIfItsNumberOfPartsIsNoNumber) {
  for (const char* count : {"", "two", "12345678901"}) {
    EXPECT_EQ(gguf_of(GgufFile().text("split.count", count).floats("a", {1}).file()).tensors().size(), 1u)
        << count;
  }
}

TEST(Gguf, IsAPartOnlyIfItsNameIsThatOfOne) {
  for (const char* name : {"m-00000-of-00002.gguf", "m-00003-of-00002.gguf", "m_00002_of_00002.gguf",
                           "m-0000x-of-00002.gguf", "m-00001-of-0000x.gguf"}) {
    const test::Scratch scratch;
    test::put(scratch / name, GgufFile().floats("a", {1}).file());
    EXPECT_EQ(Checkpoint(scratch.folder()).files(), std::vector<fs::path>{scratch / name});
  }
  // The second part does not stand for the model.
  const test::Scratch scratch;
  test::put(scratch / "m-00002-of-00002.gguf", GgufFile().floats("a", {1}).file());
  EXPECT_EQ(
      test::error_of(ErrorCode::Io, [&] { const Checkpoint checkpoint(scratch.folder()); }),
      "checkpoint: " + scratch.folder().string() + ": has no .safetensors file and no pytorch_model.bin");
}

TEST(Gguf, IsChosenInAFolderThatHasNothingElse) {
  const test::Scratch scratch;
  test::put(scratch / "config.json", "{}");
  test::put(scratch / "q4.gguf", GgufFile().floats("a", {1}).file());
  EXPECT_NE(Checkpoint(scratch.folder()).find("a"), nullptr);
  EXPECT_EQ(Checkpoint(scratch.folder()).config_text(), std::nullopt);
  test::put(scratch / "q8.gguf", GgufFile().floats("a", {1}).file());
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { const Checkpoint checkpoint(scratch.folder()); }),
            "checkpoint: " + scratch.folder().string() +
                ": has 2 files of weights (\"q4.gguf\", \"q8.gguf\"), expected one; name the file to open");
}

}  // namespace
}  // namespace normscope::files
