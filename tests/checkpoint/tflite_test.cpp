#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <normscope/checkpoint/checkpoint.hpp>
#include <normscope/core/error.hpp>

#include "checkpoint/fixture_files.hpp"
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
