#include <normscope/files/array.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/file.hpp>
#include <normscope/core/random.hpp>

#include "files/test_files.hpp"
#include "files/zip_files.hpp"
#include "support/data.hpp"
#include "support/environment.hpp"
#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::files {
namespace {

using Shape = std::vector<std::uint64_t>;
using namespace std::string_literals;
using Values = std::vector<double>;

class NamedArray : public testing::Test {
 protected:
  NamedArray() {
    test::put(folder_ / "model.safetensors",
              test::safetensors_file(R"({"w":{"dtype":"U8","shape":[2,3],"data_offsets":[0,6]},)"
                                     R"("w[0]":{"dtype":"U8","shape":[1],"data_offsets":[6,7]},)"
                                     R"("x:0":{"dtype":"U8","shape":[],"data_offsets":[7,8]}})",
                                     "\1\2\3\4\5\6\7\10"));
  }
  std::string file() const { return (folder_ / "model.safetensors").string(); }
  std::string complaint(ErrorCode code, const std::string& name) const {
    return test::error_of(code, [&] { (void)read_array(name); });
  }

  test::Scratch folder_;
};

TEST_F(NamedArray, ReadsTensorsOfFilesAndFolders) {
  for (const std::string& checkpoint : {file(), folder_.folder().string()}) {
    const files::Array array = read_array(checkpoint + ":w");
    EXPECT_EQ(array.shape, (Shape{2, 3}));
    EXPECT_EQ(array.values, (Values{1, 2, 3, 4, 5, 6}));
  }
}

TEST_F(NamedArray, ReadsSlicesUnlessATensorHasThatName) {
  const files::Array slice = read_array(file() + ":w[1]");
  EXPECT_EQ(slice.shape, Shape{3});
  EXPECT_EQ(slice.values, (Values{4, 5, 6}));
  EXPECT_EQ(read_array(file() + ":w[0]").values, Values{7});
  EXPECT_EQ(read_array(file() + ":w[0][0]").shape, Shape{});
}

TEST_F(NamedArray, IsOpenedWithItsFileCheckpointAndTensor) {
  const OpenedArray slice(folder_.folder().string() + ":w[1]");
  EXPECT_EQ(slice.file(), folder_.folder());
  EXPECT_FALSE(slice.fills_file());
  EXPECT_EQ(slice.tensor(), "w[1]");
  EXPECT_EQ(slice.checkpoint()->files(), (std::vector<std::filesystem::path>{file()}));
  EXPECT_EQ(slice.dtype(), Dtype::U8);
  EXPECT_EQ(slice.elements(), 3U);

  const std::string npy = (folder_ / "a.npy").string();
  files::write_npy(npy, {{2}, Dtype::F32, {1, 2}});
  const OpenedArray own(npy);
  EXPECT_EQ(own.file(), std::filesystem::path(npy));
  EXPECT_TRUE(own.fills_file());
  EXPECT_EQ(own.checkpoint(), nullptr);
  EXPECT_EQ(own.tensor(), "");
}

TEST_F(NamedArray, SharesACheckpointThatItsOpenerKeeps) {
  std::shared_ptr<const Checkpoint> kept;
  int opened = 0;
  const OpenCheckpoint open = [&](const std::filesystem::path& path) {
    if (!kept) {
      kept = open_checkpoint(path);
      ++opened;
    }
    return kept;
  };
  const OpenedArray whole(file() + ":w", open);
  const OpenedArray slice(file() + ":w[1]", open);
  EXPECT_EQ(opened, 1);
  kept.reset();
  EXPECT_EQ(whole.values(), (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(slice.values(), (Values{4, 5, 6}));
}

TEST_F(NamedArray, GivesTheBytesOfItsElements) {
  const auto bytes_of = [](const OpenedArray& array) {
    std::vector<std::byte> buffer;
    const std::span<const std::byte> elements = array.bytes(buffer);
    return std::vector<std::byte>(elements.begin(), elements.end());
  };
  EXPECT_EQ(bytes_of(OpenedArray(file() + ":w[1]")),
            (std::vector<std::byte>{std::byte{4}, std::byte{5}, std::byte{6}}));

  files::write_npy(folder_ / "a.npy", {{2, 2}, Dtype::F32, {1, 2, 3, 4}});
  const std::vector<std::byte> own = bytes_of(OpenedArray((folder_ / "a.npy").string()));
  Values values(4);
  decode(Dtype::F32, own, values);
  EXPECT_EQ(values, (Values{1, 2, 3, 4}));
}

TEST_F(NamedArray, MayBeOfElementsThatWereOpenedBefore) {
  files::write_npy(folder_ / "a.npy", {{2, 2}, Dtype::F32, {1, 2, 3, 4}});
  const auto mapped = std::make_shared<const MappedFile>(folder_ / "a.npy");
  const OpenedArray array("a", files::open_npy(mapped, "a"));
  EXPECT_EQ(array.elements(), 4U);
  EXPECT_EQ(array.values(), (Values{1, 2, 3, 4}));
  EXPECT_EQ(array.file(), std::nullopt);
}

TEST_F(NamedArray, TheShapeOfARowIsCheckedBeforeItIsRead) {
  test::put(folder_ / "f4.safetensors",
            test::safetensors_file(R"({"w":{"dtype":"F4","shape":[2,2],"data_offsets":[0,2]}})", "12"));
  const OpenedArray array((folder_ / "f4.safetensors").string() + ":w");
  EXPECT_NE(test::error_of(ErrorCode::Shape, [&] { (void)array.row(); }).find("has 2 axes longer than 1"),
            std::string::npos);
  EXPECT_NE(test::error_of(ErrorCode::Unsupported, [&] { (void)array.values(); }).find("no decoder"),
            std::string::npos);
}

TEST_F(NamedArray, AllowsColonsInFilesAndTensors) {
  EXPECT_EQ(read_array(file() + ":x:0").values, Values{8});
  std::filesystem::rename(file(), folder_ / "a:b.safetensors");
  EXPECT_EQ(read_array((folder_ / "a:b.safetensors").string() + ":x:0").values, Values{8});
}

TEST_F(NamedArray, MayBeWrittenOut) {
  EXPECT_EQ(read_array("1,-2.5,3e-1").shape, (Shape{3}));
  EXPECT_EQ(OpenedArray("1,-2.5,3e-1").row(), (Values{1, -2.5, 0.3}));
  const files::Array rows = read_array("0,0;1,0;0,1");
  EXPECT_EQ(rows.shape, (Shape{3, 2}));
  EXPECT_EQ(rows.values, (Values{0, 0, 1, 0, 0, 1}));
  EXPECT_EQ(read_array("1;2").shape, (Shape{2, 1}));
  EXPECT_EQ(OpenedArray("1,2").file(), std::nullopt);
  EXPECT_FALSE(OpenedArray("1,2").fills_file());
}

TEST_F(NamedArray, WrittenOutMustBeNumbersInEqualRows) {
  EXPECT_NE(complaint(ErrorCode::Argument, "1,,2").find("\"\" is not a finite number"), std::string::npos);
  EXPECT_NE(complaint(ErrorCode::Argument, "1,2e999").find("2e999"), std::string::npos);
  EXPECT_NE(complaint(ErrorCode::Argument, "1,2,").find("not a finite number"), std::string::npos);
  EXPECT_NE(complaint(ErrorCode::Shape, "1,2;3").find("row 1 has 1 numbers"), std::string::npos);
  EXPECT_NE(complaint(ErrorCode::Argument, "1,nan").find("\"nan\" is not a finite number"),
            std::string::npos);
  EXPECT_NE(complaint(ErrorCode::Argument, "-INF;2").find("\"-INF\" is not a finite number"),
            std::string::npos);
  EXPECT_NE(complaint(ErrorCode::Argument, "1,-2e-400").find("nearer to zero than any float64"),
            std::string::npos);
  EXPECT_EQ(OpenedArray("0e-400,0.0").row(), (Values{0, 0}));
  EXPECT_EQ(OpenedArray("1,5e-324").row(), (Values{1, 5e-324}));
}

TEST_F(NamedArray, OneNumberAloneIsAFileThatIsNotThere) {
  for (const char* name : {"12", "-1e5", "nan", "-inf", "Infinity"}) {
    EXPECT_EQ(complaint(ErrorCode::Io, name), std::string("array: ") + name +
                                                  ": no such file; a literal array has two or more finite "
                                                  "numbers: 1,2 is one row, 0;1 is two rows");
  }
  EXPECT_EQ(complaint(ErrorCode::Io, "nano"), "array: nano: no such file");
  EXPECT_EQ(complaint(ErrorCode::Io, "1,x.npy"), "array: 1,x.npy: no such file");
}

TEST_F(NamedArray, NamesWhatIsMissing) {
  EXPECT_EQ(complaint(ErrorCode::Argument, file() + ":w[2]"),
            "array: " + file() + ": no slice 2 of tensor \"w\", which has 2 along its first axis");
  EXPECT_EQ(complaint(ErrorCode::Argument, file() + ":x:0[0]"),
            "array: " + file() + ": no slice 0 of tensor \"x:0\", which has 0 along its first axis");
  const std::string list = "; it has 3 tensors: \"w\", \"w[0]\", \"x:0\"";
  EXPECT_EQ(complaint(ErrorCode::Argument, file() + ":v"), "array: " + file() + ": has no \"v\"" + list);
  EXPECT_EQ(complaint(ErrorCode::Argument, file() + ":w[-1]"),
            "array: " + file() + ": has no \"w[-1]\"" + list);
  EXPECT_EQ(complaint(ErrorCode::Argument, file()),
            "array: " + file() + ": holds named arrays, expected FILE:NAME" + list);
  for (const char* slice : {"w[]", "w[1234567890123456789]", "w[1x]", "w[1", "w]", "v[0]"}) {
    EXPECT_EQ(complaint(ErrorCode::Argument, file() + ":" + slice).rfind("array: " + file() + ": has no ", 0),
              0U)
        << slice;
  }
  EXPECT_EQ(complaint(ErrorCode::Io, "none.npz:a"), "array: none.npz:a: no such file");
  EXPECT_EQ(complaint(ErrorCode::Io, ":a"), "array: :a: no such file");
  EXPECT_EQ(complaint(ErrorCode::Io, std::string(100'000, 'x')).substr(0, 8), "array: x");
}

TEST_F(NamedArray, ListsTheFirstNamesOfAFile) {
  test::put(folder_ / "none.safetensors", test::safetensors_file("{}"));
  const std::string none = (folder_ / "none.safetensors").string();
  EXPECT_EQ(complaint(ErrorCode::Argument, none + ":v"),
            "array: " + none + ": has no \"v\"; it has 0 tensors");
  std::string header = "{";
  for (const char letter : {'a', 'b', 'c', 'd', 'e', 'f', 'g'}) {
    header += (letter == 'a' ? "\"" : ",\"") + std::string(12, letter) +
              R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  }
  test::put(folder_ / "many.safetensors", test::safetensors_file(header + "}"));
  const std::string message = complaint(ErrorCode::Argument, (folder_ / "many.safetensors").string() + ":v");
  EXPECT_NE(message.find("; it has 7 tensors: \"aaaaaaaaaaaa\", "), std::string::npos) << message;
  EXPECT_EQ(message.substr(message.size() - 19), "\"ffffffffffff\", ...") << message;
  EXPECT_NE(complaint(ErrorCode::Argument, (folder_ / "many.safetensors").string() + ":aaaaaaaaaaab")
                .find("; did you mean \"aaaaaaaaaaaa\"?"),
            std::string::npos);
}

TEST_F(NamedArray, OfAModelInTheHubsCache) {
  const std::filesystem::path snapshot = folder_ / "hub" / "models--org--m" / "snapshots" / "1";
  std::filesystem::create_directories(snapshot);
  std::filesystem::rename(file(), snapshot / "model.safetensors");
  const test::Environment hub("HF_HUB_CACHE", (folder_ / "hub").string());
  EXPECT_EQ(read_array("org/m:w[1]").values, (Values{4, 5, 6}));
  EXPECT_EQ(read_array("org/m:x:0").values, Values{8});
  EXPECT_EQ(complaint(ErrorCode::Io, "org/n:w"), "array: org/n:w: no such file");
}

TEST_F(NamedArray, OfAFileWithOneArrayHasNoNameBehindIt) {
  const std::string npy = (folder_ / "a.npy").string();
  files::write_npy(npy, {{1}, Dtype::U8, {1}});
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { (void)read_array(npy + ":x"); }),
            "array: " + npy + ": is a single array, expected no name after it, found \"x\"");
  const std::string idx = (folder_ / "x.idx").string();
  test::put(idx, std::string("\0\0\x08\x01\0\0\0\x02\1\2", 10));
  EXPECT_EQ(read_array(idx).values, (Values{1, 2}));
  EXPECT_THROW((void)read_array(idx + ":a"), Error);
  // gzip of the same with 1, 2, 3
  const std::vector<unsigned char> packed{31, 139, 8,   0,   0,   0,  0,  0,   2,   255, 99,
                                          96, 224, 96,  100, 96,  96, 96, 102, 100, 98,  6,
                                          0,  139, 229, 189, 164, 11, 0,  0,   0};
  const std::string compressed = (folder_ / "labels-idx1-ubyte.gz").string();
  test::put(compressed, std::string(packed.begin(), packed.end()));
  EXPECT_EQ(read_array(compressed).values, (Values{1, 2, 3}));
}

TEST_F(NamedArray, OfAZipIsAMemberOrAnErrorThatListsThem) {
  const auto npy = [](const std::string& value) {
    return "\x93NUMPY\1\0\x3b\0{'descr': '|u1', 'fortran_order': False, 'shape': (1,), } \n"s + value;
  };
  const std::string path = (folder_ / "a.npz").string();
  test::put(path, test::zip({test::ZipEntry(npy("\1"), "x.npy"), test::ZipEntry(npy("\2"), "y.npy")}));
  EXPECT_EQ(read_array(path + ":y").values, Values{2});
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { (void)read_array(path + ":a"); }),
            "array: " + path + ": has no \"a\"; it has 2 members: \"x\", \"y\"");
  EXPECT_EQ(test::error_of(ErrorCode::Argument, [&] { (void)read_array(path); }),
            "array: " + path + ": holds named arrays, expected FILE:NAME; it has 2 members: \"x\", \"y\"");
  test::put(path, test::zip({test::ZipEntry(npy("\1"), "x.npy"), test::ZipEntry("text", "readme.txt")}));
  EXPECT_EQ(
      test::error_of(ErrorCode::Argument, [&] { (void)read_array(path); }),
      "array: " + path + ": holds named arrays, expected FILE:NAME; it has 2 members: \"x\", \"readme.txt\"");
}

using test::gzip;

Array read(const std::string& bytes) { return read_idx(std::as_bytes(std::span(bytes)), "idx: x"); }

Array read_mapped(const std::filesystem::path& path) {
  return read(open_idx(MappedFile(path), "idx: " + path.string()));
}

const std::string bytes_2x3 = "\0\0\x08\x02\0\0\0\x02\0\0\0\x03\x01\x02\x03\x04\x05\xff"s;

TEST(Idx, ReadsPlainAndPacked) {
  for (const std::string& bytes : {bytes_2x3, gzip(bytes_2x3)}) {
    const Array array = read(bytes);
    EXPECT_EQ(array.shape, (std::vector<std::uint64_t>{2, 3}));
    EXPECT_EQ(array.values, (std::vector<double>{1, 2, 3, 4, 5, 255}));
    EXPECT_EQ(array.dtype, Dtype::U8);
  }
  EXPECT_EQ(read("\0\0\x0b\x01\0\0\0\x02\xff\xfe\x01\0"s).values, (std::vector<double>{-2, 256}));
  EXPECT_EQ(read("\0\0\x0d\x01\0\0\0\x01\x3f\x80\0\0"s).values, (std::vector<double>{1}));
}

TEST(Idx, RefusesIncompleteFiles) {
  const std::string packed = gzip(bytes_2x3);
  for (std::size_t size = 0; size < bytes_2x3.size(); ++size) {
    EXPECT_THROW(static_cast<void>(read(bytes_2x3.substr(0, size))), Error) << size;
  }
  for (std::size_t size = 0; size < packed.size(); ++size) {
    EXPECT_THROW(static_cast<void>(read(packed.substr(0, size))), Error) << size;
  }
  EXPECT_THROW(static_cast<void>(read(bytes_2x3 + "x")), Error);
  EXPECT_THROW(static_cast<void>(read(packed + "x")), Error);
  EXPECT_THROW(static_cast<void>(read(gzip(bytes_2x3 + "x"))), Error);
  EXPECT_THROW(static_cast<void>(read("\0\0\x07\x01\0\0\0\0"s)), Error);
  EXPECT_THROW(static_cast<void>(read("\0\0\x08\0"s)), Error);
  // Sizes that overflow, and ones that no such file can hold.
  EXPECT_THROW(static_cast<void>(read("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s)),
               Error);
  EXPECT_THROW(static_cast<void>(read(gzip("\0\0\x0e\x01\x7f\xff\xff\xff"s))), Error);
}

TEST(Idx, UnpacksNoMoreThanTheStatedBound) {
  // What could unpack to 300 million zeros, as its header says.
  std::string noise(400'000, '\0');
  Random random(1);
  for (char& c : noise) c = static_cast<char>(random.bits());
  const std::string packed = gzip("\0\0\x08\x01\x11\xe1\xa3\x00"s + noise);
  EXPECT_EQ(test::error_of(ErrorCode::Unsupported, [&] { (void)read(packed); }),
            "idx: x: has more than the 268435456 bytes that are unpacked from " +
                std::to_string(packed.size()) + "; unpack it first");
  const std::string small = gzip("\0\0\x08\x01\x11\xe1\xa3\x00"s);
  EXPECT_EQ(test::error_of(ErrorCode::Format, [&] { (void)read(small); }),
            "idx: x: has fewer bytes than the elements that its header states");
}

TEST(Idx, UnpacksAConstantArray) {
  const Array zeros = read(gzip("\0\0\x08\x01\x01\x00\x00\x00"s + std::string(1 << 24, '\0')));
  EXPECT_EQ(zeros.shape, std::vector<std::uint64_t>{1 << 24});
}

TEST(Idx, ReadsMnist) {
  NORMSCOPE_NEED_DATA(folder, "mnist");
  const Array images = read_mapped(folder / "t10k-images-idx3-ubyte.gz");
  EXPECT_EQ(images.shape, (std::vector<std::uint64_t>{10000, 28, 28}));
  const Array labels = read_mapped(folder / "t10k-labels-idx1-ubyte.gz");
  EXPECT_EQ(std::vector(labels.values.begin(), labels.values.begin() + 5),
            (std::vector<double>{7, 2, 1, 0, 4}));
}

}  // namespace

}  // namespace normscope::files
