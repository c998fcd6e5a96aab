#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>

#include "checkpoint/fixture_files.hpp"
#include "checkpoint/flat_files.hpp"
#include "support/files.hpp"

namespace normscope::checkpoint {
namespace {

class TfliteFixtures : public testing::TestWithParam<const char*> {};

TEST_P(TfliteFixtures, HoldWhatTensorflowReads) {
  const std::string name = GetParam();
  const Checkpoint checkpoint(test::fixture_file(name + ".tflite"));
  EXPECT_EQ(checkpoint.format(), "tflite");
  test::expect_same_tensors(checkpoint, Checkpoint(test::fixture_file(name + ".safetensors")));
}
INSTANTIATE_TEST_SUITE_P(Tflite, TfliteFixtures, testing::Values("lite_plain", "lite_quantized"));

void read_tflite(const std::string& bytes) {
  const Checkpoint checkpoint("m.tflite",
                              [&](const auto&) { return std::make_unique<test::MemoryFile>(bytes); });
  for (const Tensor& tensor : checkpoint.tensors()) EXPECT_EQ(read(tensor).size(), tensor.elements());
}

TEST(Tflite, ListsScaledIntegersByTheirStoredType) {
  const Checkpoint checkpoint(test::fixture_file("lite_quantized.tflite"));
  int scaled = 0;
  for (const Tensor& tensor : checkpoint.tensors()) {
    if (tensor.stored_type() != "I8 scaled") continue;
    ++scaled;
    EXPECT_EQ(tensor.dtype, Dtype::F32);
    EXPECT_EQ(tensor.stored_bytes(), tensor.elements());
  }
  EXPECT_GE(scaled, 2);
}

TEST(Tflite, RefusesATruncationThatTakesWhatItReads) {
  const std::string good = test::fixture_bytes("lite_quantized.tflite");
  std::size_t refused = 0;
  for (std::size_t size = 8; size < good.size(); ++size) {
    try {
      read_tflite(good.substr(0, size));
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << size;
    }
  }
  // Operators and their codes, which are not read, come last.
  EXPECT_GT(refused, good.size() / 2);
}

TEST(Tflite, SurvivesAnyChangeOfOneByte) {
  const std::string good = test::fixture_bytes("lite_quantized.tflite");
  for (std::size_t at = 8; at < good.size(); ++at) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ std::array{'\xff', '\x01', '\x80'}[at % 3]);
    try {
      read_tflite(bytes);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

/// A model of a single tensor: its fields, and the elements of its buffer.
struct TfliteModel {
  std::vector<std::int32_t> shape = {1};
  std::int8_t type = 0;
  std::uint32_t buffer = 1;
  std::string name = "a";
  std::string elements = test::le(1.5F);
  std::map<unsigned, test::FlatField> others{};  ///< fields of the tensor

  [[nodiscard]] std::string file() const {
    std::string extents;
    for (const std::int32_t extent : shape) extents += test::le(extent);
    std::map<unsigned, test::FlatField> fields = others;
    fields.insert({{0, test::flat_numbers(shape.size(), extents)},
                   {1, test::le(type)},
                   {2, test::le(buffer)},
                   {3, test::flat_text(name)}});
    const test::FlatPart graph = test::flat_table({{0, test::flat_tables({test::flat_table(fields)})}});
    const test::FlatPart data = test::flat_table({{0, test::flat_text(elements)}});
    return of({{2, test::flat_tables({graph})}, {4, test::flat_tables({test::flat_table({}), data})}});
  }
  /// The file of a model with these fields.
  static std::string of(const std::map<unsigned, test::FlatField>& fields) {
    const test::FlatPart model = test::flat_table(fields);
    return test::le(static_cast<std::uint32_t>(8 + model.start)) + "TFL3" + model.bytes;
  }
};

Checkpoint tflite_of(const TfliteModel& model) {
  return Checkpoint("m.tflite",
                    [&](const auto&) { return std::make_unique<test::MemoryFile>(model.file()); });
}

std::string tflite_complaint(ErrorCode code, const TfliteModel& model) {
  const std::string message = test::error_of(code, [&] { (void)tflite_of(model); });
  return message.rfind("tflite: m.tflite: ", 0) == 0 ? message.substr(18) : message;
}

TEST(Tflite, ReadsElementsOfEveryType) {
  const std::vector<std::pair<std::int8_t, Dtype>> types = {
      {std::int8_t{0}, Dtype::F32},  {std::int8_t{1}, Dtype::F16},  {std::int8_t{2}, Dtype::I32},
      {std::int8_t{3}, Dtype::U8},   {std::int8_t{4}, Dtype::I64},  {std::int8_t{6}, Dtype::BOOL},
      {std::int8_t{7}, Dtype::I16},  {std::int8_t{8}, Dtype::C64},  {std::int8_t{9}, Dtype::I8},
      {std::int8_t{10}, Dtype::F64}, {std::int8_t{12}, Dtype::U64}, {std::int8_t{15}, Dtype::U32},
      {std::int8_t{16}, Dtype::U16}, {std::int8_t{18}, Dtype::BF16}};
  for (const auto& [number, dtype] : types) {
    TfliteModel model;
    model.type = number;
    model.elements = std::string(bits(dtype) / 8, '\0');
    EXPECT_EQ(tflite_of(model).find("a")->dtype, dtype);
  }
  TfliteModel text;
  text.type = 5;
  EXPECT_EQ(tflite_of(text).tensors().size(), 0u);
  EXPECT_EQ(read(*tflite_of({}).find("a")), std::vector<double>{1.5});
}

/// Scales of all elements, or of each entry of an axis.
test::FlatPart tflite_scales(const std::vector<float>& scales, const std::vector<std::int64_t>& zeros,
                             std::int32_t axis) {
  std::string of_scales;
  std::string of_zeros;
  for (const float scale : scales) of_scales += test::le(scale);
  for (const std::int64_t zero : zeros) of_zeros += test::le(zero);
  return test::flat_table({{2, test::flat_numbers(scales.size(), of_scales)},
                           {3, test::flat_numbers(zeros.size(), of_zeros)},
                           {6, test::le(axis)}});
}

TEST(Tflite, ScalesIntegersOfEachWidth) {
  TfliteModel model;
  model.shape = {2, 2};
  model.others = {{4, tflite_scales({0.5F, 2}, {1, 0}, 0)}};
  model.elements = "\1\2\3\4";
  const std::vector<std::pair<std::int8_t, std::string_view>> types = {
      {std::int8_t{3}, "U8 scaled"}, {std::int8_t{9}, "I8 scaled"}, {std::int8_t{7}, "I16 scaled"}};
  for (const auto& [number, name] : types) {
    model.type = number;
    if (name == "I16 scaled") model.elements = std::string("\1\0\2\0\3\0\4\0", 8);
    const Checkpoint checkpoint = tflite_of(model);
    EXPECT_EQ(checkpoint.find("a")->stored_type(), name);
    EXPECT_EQ(read(*checkpoint.find("a")), (std::vector<double>{0, 0.5, 6, 8}));
  }
  // Scales that are missing, and those of numbers that need none.
  model.type = 7;
  model.others = {{4, test::flat_table({})}};
  EXPECT_EQ(read(*tflite_of(model).find("a")), (std::vector<double>{1, 2, 3, 4}));
  TfliteModel floats;
  floats.others = {{4, tflite_scales({0.5F}, {}, 0)}};
  EXPECT_EQ(read(*tflite_of(floats).find("a")), std::vector<double>{1.5});
}

TEST(Tflite, RefusesTensorsThatAreNotSound) {
  const auto refused = [](ErrorCode code, auto change) {
    TfliteModel model;
    change(model);
    return tflite_complaint(code, model);
  };
  EXPECT_EQ(refused(ErrorCode::Format, [](auto& model) { model.buffer = 2; }),
            "has a tensor in buffer 2 of 2");
  EXPECT_EQ(refused(ErrorCode::Unsupported, [](auto& model) { model.name = std::string(4097, 'x'); }),
            "has a name of 4097 bytes, expected at most 4096");
  EXPECT_EQ(refused(ErrorCode::Unsupported,
                    [](auto& model) {
                      model.others = {{6, test::flat_table({})}};
                    }),
            "tensor \"a\" is sparse, which is not read");
  EXPECT_EQ(
      refused(ErrorCode::Unsupported, [](auto& model) { model.shape = std::vector<std::int32_t>(65, 1); }),
      "tensor \"a\" has 65 axes, expected at most 64");
  EXPECT_EQ(refused(ErrorCode::Format, [](auto& model) { model.shape = {-1}; }),
            "tensor \"a\" has an axis of -1");
  EXPECT_EQ(refused(ErrorCode::Shape, [](auto& model) { model.shape = {2}; }),
            "tensor \"a\" has 4 bytes, expected 8 for 2 elements of F32");
  struct Scales {
    std::size_t scales, zeros;
    std::int32_t axis;
  };
  for (const Scales& wrong : {Scales{2, 0, 1}, Scales{3, 0, 0}, Scales{2, 1, 0}, Scales{1, 2, 0}}) {
    const std::string message = refused(ErrorCode::Format, [&wrong](auto& model) {
      model.type = 9;
      model.shape = {2};
      model.elements = "12";
      model.others = {{4, tflite_scales(std::vector<float>(wrong.scales, 1),
                                        std::vector<std::int64_t>(wrong.zeros, 0), wrong.axis)}};
    });
    EXPECT_EQ(message, "tensor \"a\" has " + std::to_string(wrong.scales) + " scales and " +
                           std::to_string(wrong.zeros) + " zero points for axis " +
                           std::to_string(wrong.axis));
  }
}

TEST(Tflite, RefusesTablesThatAreNotSound) {
  std::string bytes = TfliteModel().file();
  std::uint32_t root = 0;
  std::memcpy(&root, bytes.data(), sizeof root);
  const std::int32_t behind_everything = 0x7fffffff;
  std::memcpy(bytes.data() + root, &behind_everything, sizeof behind_everything);
  EXPECT_NE(test::error_of(ErrorCode::Format, [&] { read_tflite(bytes); }).find(" has no list of fields"),
            std::string::npos);
  // A model without graphs has no tensors.
  read_tflite(TfliteModel::of({}));
}

TEST(Tflite, RefusesACountBeyondTheFile) {
  std::string bytes = test::fixture_bytes("lite_plain.tflite");
  std::uint32_t root = 0;
  std::memcpy(&root, bytes.data(), sizeof root);
  root = 0xfffffff0u;
  std::memcpy(bytes.data(), &root, sizeof root);
  EXPECT_NE(
      test::error_of(ErrorCode::Format, [&] { read_tflite(bytes); }).find("expected 4 at byte 4294967280"),
      std::string::npos);
}

}  // namespace
}  // namespace normscope::checkpoint
