#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/files/checkpoint.hpp>

#include "files/test_files.hpp"
#include "support/scratch.hpp"

/// Matrices that are packed as config.json states, against what the library that packed them makes of them
/// (scripts/mlx_oracle), and refused where their parts contradict each other.
namespace normscope::files {
namespace {

namespace fs = std::filesystem;

const fs::path mlx_folder = fs::path(NORMSCOPE_SOURCE_DIR) / "tests/files/fixtures/mlx";

TEST(PackedWeights, EveryFormatOfMlxHasTheValuesThatMlxGivesIt) {
  const Checkpoint file(mlx_folder);
  EXPECT_EQ(file.quantization(), "mlx");
  std::size_t formats = 0;
  for (const Tensor& given : file.tensors()) {
    if (!given.name.ends_with(".dequantized")) continue;
    const std::string stem(given.name.substr(0, given.name.find('.')));
    const Tensor* const packed = file.find(stem + ".weight");
    ASSERT_NE(packed, nullptr) << stem;
    EXPECT_EQ(file.find(stem + ".scales"), nullptr);
    ASSERT_NE(packed->quantized, nullptr) << stem;
    EXPECT_TRUE(std::ranges::equal(packed->shape, given.shape)) << stem;
    const std::vector<double> wanted = read(given);
    const std::vector<double> found = read(*packed);
    // MLX rounds what it computes to the type of the scales.
    const double precision = stem.ends_with("bfloat16")  ? 0x1p-7
                             : stem.ends_with("float16") ? 0x1p-10
                                                         : 0x1p-22;
    for (std::size_t row = 0; row < 6; ++row) {
      double largest = 0.0;
      for (std::size_t j = 0; j < 128; ++j) largest = std::max(largest, std::abs(wanted[row * 128 + j]));
      for (std::size_t j = 0; j < 128; ++j) {
        EXPECT_NEAR(found[row * 128 + j], wanted[row * 128 + j], precision * largest) << stem << " " << row;
      }
    }
    const std::vector<double> part = read(*packed, 130, 300);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), found.begin() + 130)) << stem;
    ++formats;
  }
  EXPECT_EQ(formats, 13U);
  EXPECT_EQ(file.find("affine4.weight")->stored_type(), "MLX-4bit-g64");
  EXPECT_EQ(file.find("affine4.weight")->stored_bytes(), 6U * 2U * (32U + 8U));
}

/// A folder with one packed matrix, w.weight [1, 64], of which a test changes something.
struct Packed {
  std::string config = R"({"quantization": {"group_size": 32, "bits": 4}})";
  std::string scales = R"("w.scales":{"dtype":"F16","shape":[1,2],"data_offsets":[32,36]})";
  std::string biases = R"("w.biases":{"dtype":"F16","shape":[1,2],"data_offsets":[36,40]})";

  /// The message of the error; empty without one.
  [[nodiscard]] std::string error() const {
    const test::Scratch scratch;
    const std::string header =
        R"({"w.weight":{"dtype":"U32","shape":[1,8],"data_offsets":[0,32]},)" + scales + "," + biases + "}";
    test::put(scratch / "model.safetensors", test::safetensors_file(header, std::string(40, '\1')));
    test::put(scratch / "config.json", config);
    try {
      EXPECT_NE(Checkpoint(scratch.folder()).find("w.weight")->quantized, nullptr);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }
};

TEST(PackedWeights, RefusesPartsThatDoNotFitToWhatIsStated) {
  EXPECT_EQ(Packed().error(), "");
  const auto expect = [](const Packed& packed, const char* what) {
    EXPECT_NE(packed.error().find(what), std::string::npos) << packed.error();
  };
  expect({.config = R"({"quantization": {"group_size": 64, "bits": 4}})"},
         R"("w.weight" [1, 8] and "w.scales" [1, 2] do not fit to the 4 bits in groups of 64)");
  expect({.config = R"({"quantization": {"group_size": 32, "bits": 4, "w": {"group_size": 32, "bits": 8}}})"},
         "do not fit to the 8 bits in groups of 32 that \"quantization.w\" states");
  expect({.config = R"({"quantization": {"group_size": 32, "bits": 4, "w": false}})"}, "not quantized");
  expect({.config = R"({"quantization": {"group_size": 32, "bits": "4"}})"}, "expected a whole number");
  expect({.config = R"({"quantization": {"group_size": 32, "bits": 7}})"},
         "expected 2, 3, 4, 5, 6 or 8 bits");
  expect({.config = R"({"quantization": {"group_size": 32, "bits": 4, "mode": "mxfp4"}})"}, "expected U8");
  expect({.config = R"({"quantization": {"group_size": 32, "bits": 4, "mode": "new"}})"}, "mode \"new\"");
  expect({.biases = R"("v.biases":{"dtype":"F16","shape":[1,2],"data_offsets":[36,40]})"},
         "has no w.biases, which mode \"affine\" needs");
  expect({.biases = R"("w.biases":{"dtype":"F16","shape":[2],"data_offsets":[36,40]})"},
         "expected [1, 2] as its scales");
}

}  // namespace
}  // namespace normscope::files
