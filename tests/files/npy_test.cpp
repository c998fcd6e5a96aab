#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/array.hpp>

#include "files/read_files.hpp"
#include "support/data.hpp"
#include "support/files.hpp"
#include "support/scratch.hpp"

namespace normscope::files {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using Shape = std::vector<std::uint64_t>;
using Values = std::vector<double>;

/// A `.npy` file of version 1.0 with this header text.
std::string npy(const std::string& header, const std::string& data = "") {
  std::string file = "\x93NUMPY\1\0"s;
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  return file + header + data;
}

std::string dict(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

class Npy : public testing::Test {
 protected:
  Array read(const std::string& file) const {
    test::put(path_, file);
    return test::read_npy(path_);
  }
  std::string complaint(const std::string& file, ErrorCode code = ErrorCode::Format) const {
    const std::string message = test::error_of(code, [&] { (void)read(file); });
    const std::string prefix = "npy: " + path_.string() + ": ";
    return message.rfind(prefix, 0) == 0 ? message.substr(prefix.size()) : message;
  }
  std::string written(const Array& array) const {
    write_npy(path_, array);
    std::ifstream in(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  test::Scratch scratch_;
  fs::path path_ = scratch_ / "a.npy";
};

TEST_F(Npy, ReadsBigEndianFortranOrder) {
  // numpy.save of numpy.array([[1, 2, 3], [4, 5, -6.5]], '>f4', order='F')
  const Array array = read(npy(dict(">f4", "True", "(2, 3)"),
                               "\x3f\x80\0\0\x40\x80\0\0\x40\0\0\0\x40\xa0\0\0\x40\x40\0\0\xc0\xd0\0\0"s));
  EXPECT_EQ(array.shape, (Shape{2, 3}));
  EXPECT_EQ(array.dtype, Dtype::F32);
  EXPECT_EQ(array.values, (Values{1, 2, 3, 4, 5, -6.5}));
}

TEST_F(Npy, ReordersThreeAxesOfFortranOrder) {
  std::string data;
  for (char i = 0; i < 24; ++i) data += i;
  const Array array = read(npy(dict("|u1", "True", "(2, 3, 4)"), data));
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 4; ++k) {
        EXPECT_EQ(array.values[(i * 3 + j) * 4 + k], static_cast<double>(i + 2 * j + 6 * k));
      }
    }
  }
}

TEST_F(Npy, ReadsEveryNumericDtype) {
  const struct {
    const char* descr;
    std::string data;
    Dtype dtype;
    double value;
  } cases[] = {
      {"<f8", "\0\0\0\0\0\0\xf8\x3f"s, Dtype::F64, 1.5},
      {"<f4", "\0\0\xc0\x3f"s, Dtype::F32, 1.5},
      {"<f2", "\0\x3e"s, Dtype::F16, 1.5},
      {">f8", "\x3f\xf8\0\0\0\0\0\0"s, Dtype::F64, 1.5},
      {">f2", "\x3e\0"s, Dtype::F16, 1.5},
      {"=f4", "\0\0\xc0\x3f"s, Dtype::F32, 1.5},
      {"|b1", "\1"s, Dtype::BOOL, 1},
      {"|i1", "\xff"s, Dtype::I8, -1},
      {"|u1", "\xff"s, Dtype::U8, 255},
      {"<i2", "\xfe\xff"s, Dtype::I16, -2},
      {">u2", "\1\2"s, Dtype::U16, 258},
      {"<i4", "\xfd\xff\xff\xff"s, Dtype::I32, -3},
      {">u4", "\0\0\1\0"s, Dtype::U32, 256},
      {"<i8", "\xfc\xff\xff\xff\xff\xff\xff\xff"s, Dtype::I64, -4},
      {">u8", "\0\0\0\1\0\0\0\0"s, Dtype::U64, 4294967296},
  };
  for (const auto& expected : cases) {
    const Array array = read(npy(dict(expected.descr, "False", "()"), expected.data));
    EXPECT_TRUE(array.shape.empty());
    EXPECT_EQ(array.dtype, expected.dtype) << expected.descr;
    EXPECT_EQ(array.values, Values{expected.value}) << expected.descr;
  }
}

TEST_F(Npy, ReadsVersionsTwoAndThree) {
  for (const char version : {'\2', '\3'}) {
    const std::string header = dict("|u1", "False", "(1,)");
    const std::string file =
        "\x93NUMPY"s + version + '\0' + static_cast<char>(header.size()) + "\0\0\0"s + header + "\7";
    EXPECT_EQ(read(file).values, Values{7});
  }
}

TEST_F(Npy, ReadsHeadersAsOtherWritersSpellThem) {
  EXPECT_EQ(read(npy(R"({"shape":(2L,),"fortran_order":False,"descr":"|u1"})", "\1\2")).values,
            (Values{1, 2}));
  EXPECT_EQ(read(npy(dict("<f8", "False", "(0, 3)"))).shape, (Shape{0, 3}));
}

TEST_F(Npy, RejectsOtherDtypes) {
  for (const char* descr : {"|O", "<U4", "|S3", "<c8", "<M8[ns]", "<f16", "|V2", "f4", ""}) {
    EXPECT_EQ(
        complaint(npy(dict(descr, "False", "(1,)"), "1234"), ErrorCode::Unsupported),
        "dtype is \"" + std::string(descr) + "\", expected floats of 2, 4 or 8 bytes, integers or bool");
  }
  EXPECT_EQ(complaint(npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }"),
                      ErrorCode::Unsupported),
            "dtype is structured, expected plain numbers");
}

TEST_F(Npy, RejectsDataOfAnotherSize) {
  const std::string header = dict("<f4", "False", "(2,)");
  EXPECT_EQ(complaint(npy(header, "1234567")), "has 7 bytes of data, expected 8 for 2 elements of F32");
  EXPECT_EQ(complaint(npy(header, "123456789")), "has 9 bytes of data, expected 8 for 2 elements of F32");
  EXPECT_EQ(complaint(npy(dict("|u1", "False", "(4611686018427387904,)"), "1"), ErrorCode::Shape),
            "size of the array overflows 64 bits");
  EXPECT_EQ(complaint(npy(dict("|u1", "False", "(4294967296, 4294967296)"), "1"), ErrorCode::Shape),
            "size of the array overflows 64 bits");
  EXPECT_EQ(complaint(npy(dict("<f8", "False", "(2305843009213693951,)"), "1")),
            "has 1 bytes of data, expected 18446744073709551608 for 2305843009213693951 elements of F64");
}

TEST_F(Npy, RejectsBrokenHeaders) {
  EXPECT_EQ(complaint("\x93NUMPY\1"), "has 7 bytes, too few for a .npy header");
  EXPECT_EQ(complaint("\x93NUMPY\4\0\1\0{}"s), ".npy version is 4.0, expected 1.0, 2.0 or 3.0");
  EXPECT_EQ(complaint("\x93NUMPY\1\1\1\0{}"s), ".npy version is 1.1, expected 1.0, 2.0 or 3.0");
  EXPECT_EQ(complaint("\x93NUMPY\1\0\xff\0{}"s), "header ends at byte 265, file has 12");
  EXPECT_EQ(complaint("\x93NUMPY\2\0\xff\xff\xff\xff{}"s),
            ".npy header has 4294967295 bytes, expected from 2 to 1048576");
  EXPECT_EQ(complaint("\x93NUMPY\1\0\0\0{}"s), ".npy header has 0 bytes, expected from 2 to 1048576");
  const auto at = [](std::size_t byte, const std::string& expected) {
    return "header at byte " + std::to_string(byte) + ": expected " + expected;
  };
  EXPECT_EQ(complaint(npy("{}")), at(2, "the keys descr, fortran_order and shape"));
  EXPECT_EQ(complaint(npy("[1]")), at(0, "'{'"));
  EXPECT_EQ(complaint(npy("{'a")), at(2, "the end of a string"));
  EXPECT_EQ(complaint(npy("{'x': 1}")), at(4, "each of the keys descr, fortran_order and shape once"));
  EXPECT_EQ(complaint(npy("{'shape': (), 'shape': ()}")),
            at(21, "each of the keys descr, fortran_order and shape once"));
  EXPECT_EQ(complaint(npy("{'shape': (3)}")), at(12, "','"));
  EXPECT_EQ(complaint(npy("{'shape': (-1,)}")), at(11, "an integer >= 0"));
  EXPECT_EQ(complaint(npy("{'shape': (1.5,)}")), at(12, "','"));
  EXPECT_EQ(complaint(npy("{'shape': (18446744073709551616,)}")), at(30, "an integer of 64 bits"));
  EXPECT_EQ(complaint(npy("{'fortran_order': 1}")), at(18, "True or False"));
  EXPECT_EQ(complaint(npy(dict("|u1", "False", "(1,)") + "x", "1")), at(58, "the end of the header"));
}

TEST_F(Npy, WritesNumPysBytes) {
  // numpy.save of numpy.array([[1.5, -2]], 'f4')
  const std::string header = dict("<f4", "False", "(1, 2)");
  EXPECT_EQ(written({{1, 2}, Dtype::F32, {1.5, -2.0}}),
            "\x93NUMPY\1\0\x76\0"s + header.substr(0, header.size() - 1) +
                std::string(118 - header.size(), ' ') + "\n\0\0\xc0\x3f\0\0\0\xc0"s);
}

TEST_F(Npy, ReadsBackWhatItWrites) {
  const struct {
    Dtype dtype;
    Dtype stored;
  } cases[] = {{Dtype::F64, Dtype::F64},
               {Dtype::F32, Dtype::F32},
               {Dtype::F16, Dtype::F16},
               {Dtype::BF16, Dtype::F32},
               {Dtype::I32, Dtype::F64}};
  for (const auto& [dtype, stored] : cases) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 2}, Shape{3, 1, 7000}}) {
      std::size_t size = 1;
      for (const std::uint64_t extent : shape) size *= extent;
      Values values(size);
      for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<double>(i % 2048) / 4;
      const std::string file = written({shape, dtype, values});
      EXPECT_EQ((file.size() - values.size() * bits(stored) / 8) % 64, 0u);
      const Array again = read(file);
      EXPECT_EQ(again.shape, shape);
      EXPECT_EQ(again.dtype, stored);
      EXPECT_EQ(again.values, values);
    }
  }
}

TEST_F(Npy, WritesLongHeadersAsVersionTwo) {
  const Shape shape(30'000, 1);
  const std::string file = written({shape, Dtype::F64, {2.5}});
  EXPECT_EQ(file[6], '\2');
  EXPECT_EQ((file.size() - 8) % 64, 0u);
  EXPECT_EQ(read(file).shape, shape);
}

TEST_F(Npy, WritesNothingForAShapeThatDisagrees) {
  EXPECT_EQ(test::error_of(ErrorCode::Shape,
                           [&] {
                             write_npy(path_, {{2}, Dtype::F64, {1}});
                           }),
            "write_npy: " + path_.string() + ": the shape has 2 elements, expected 1, the number of values");
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(Npy, ReadsARealArray) {
  NORMSCOPE_NEED_DATA(path, "checkpoints/presto_inputs.npy");
  const Array array = test::read_npy(path);
  std::size_t size = 1;
  for (const std::uint64_t extent : array.shape) size *= extent;
  EXPECT_EQ(array.values.size(), size);
  EXPECT_EQ(array.shape[0], 1122u);
}

}  // namespace
}  // namespace normscope::files
