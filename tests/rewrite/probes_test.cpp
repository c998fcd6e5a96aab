#include "../../src/rewrite/matrix.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/norm/norm.hpp>

#include "../../src/rewrite/matrix.hpp"
#include "../../src/rewrite/matrix_rewrite.hpp"
#include "rewrite/appended.hpp"
#include "support/norms.hpp"

namespace normscope::rewrite {
namespace {

std::vector<NormSpec> norms_with_elementwise_kinds() {
  std::vector<NormSpec> specs = test::norms_of_every_kind(24);
  for (NormSpec& spec : test::elementwise_norms(24, 0.7, -0.2)) specs.push_back(std::move(spec));
  return specs;
}

double length_of_output(const std::vector<double>& output) {
  double squares = 0.0;
  for (const double value : output) squares += value * value;
  return std::sqrt(squares);
}

TEST(RewriteProbes, NormalizedRowsAreThoseOfTheNorm) {
  for (const NormSpec& spec : norms_with_elementwise_kinds()) {
    std::vector<double> row = test::random_values(24, 4, 0.3);
    const std::vector<double> output = normalized(spec, row);
    norm::forward(spec, {row.data(), 1, row.size()}, {row.data(), 1, row.size()});
    for (std::size_t j = 0; j < row.size(); ++j) {
      EXPECT_NEAR(output[j] * spec.gain_at(j), row[j], 1e-14 * std::abs(spec.gain_at(j)))
          << test::describe(spec);
    }
  }
}

TEST(RewriteProbes, NoOutputIsLongerThanTheBound) {
  for (const NormSpec& spec : norms_with_elementwise_kinds()) {
    double largest = 0.0;
    for (const double scale : {1e-3, 1.0, 1e3}) {
      std::vector<double> row = test::random_values(24, 7);
      for (double& value : row) value *= scale;
      largest = std::max(largest, length_of_output(normalized(spec, row)));
    }
    EXPECT_LE(largest, longest_output(spec) * (1.0 + 1e-14)) << test::describe(spec);
    EXPECT_GE(largest, 0.8 * longest_output(spec)) << test::describe(spec);
  }
}

TEST(RewriteProbes, ARowOfZerosStays) {
  const std::vector<double> zeros(24);
  for (const double eps : {0.0, 1e-5}) {
    EXPECT_EQ(normalized({.kind = NormKind::layer, .width = 24, .eps = eps}, zeros), zeros) << eps;
  }
}

TEST(RewriteProbes, WritersWithoutAMeanHaveProbesToo) {
  const std::vector<Probe> probes = writer_probes(std::vector<double>(3), 1);
  for (std::size_t j = 0; j < 3; ++j) {
    EXPECT_NE(probes[j][0], 0.0);
    EXPECT_EQ(probes[j][2], 0.0);
    EXPECT_EQ(probes[j][3], j == 1 ? 1.0 : 0.0);
  }
}

/// A matrix of ones in memory, and the norm of gain 0 that it reads.
struct Ones {
  explicit Ones(std::size_t outputs) : shape{outputs, 16}, bytes(outputs * 16 * 2) {
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
      bytes[i] = std::byte{0x80};
      bytes[i + 1] = std::byte{0x3f};
    }
    tensor.name = "w";
    tensor.dtype = Dtype::BF16;
    tensor.shape = shape;
    tensor.bytes = std::span<const std::byte>(bytes);
    map.in = 16;
    map.out = map.stored_out = outputs;
  }

  std::vector<std::uint64_t> shape;
  std::vector<std::byte> bytes;
  files::Tensor tensor{};
  models::Linear map{};
  NormSpec norm{.kind = NormKind::rms, .width = 16, .gain = std::vector<double>(16)};
};

// One more than a recipe keeps says that there are too many.
TEST(RewriteMatrix, ValuesThatAGainLosesAreKeptUpToALimit) {
  const Ones ones(most_kept / 16 + 1);
  UndoPart part;
  Certificate certificate;
  std::vector<std::byte> scaled;
  scale_inputs({ones.tensor, ones.map}, ones.norm, {}, 0, test::appended_to(scaled), certificate, part);
  EXPECT_EQ(part.at.size(), most_kept + 1);
  EXPECT_TRUE(std::is_sorted(part.at.begin(), part.at.end()));
  EXPECT_EQ(part.values.size(), 2 * part.at.size());
  EXPECT_EQ(certificate.relative_bound, 0.0) << "the outputs are 0";
}

// A matrix is rotated in two blocks, with a gain of 0 for one feature.
TEST(RewriteMatrix, ValuesThatAGainLosesAreKeptInEveryBlockOfRows) {
  const Ones ones((std::size_t{1} << 18U) / 16 + 2);
  NormSpec norm = ones.norm;
  std::fill(norm.gain.begin(), norm.gain.end(), 2.0);
  norm.gain[3] = 0.0;
  const Rotation rotation = Rotation::random(16, 1, false);
  Certificate certificate;
  UndoEdit edit{.change = Change::rotate_inputs};
  std::vector<std::byte> rotated;
  rotate_inputs({ones.tensor, ones.map}, norm, {}, rotation, 1, test::appended_to(rotated), certificate,
                edit.part);
  ASSERT_EQ(edit.part.at.size(), ones.map.out);
  files::Tensor stored = ones.tensor;
  stored.bytes = std::span<const std::byte>(rotated);
  std::vector<std::byte> restored;
  restore_rotated({stored, ones.map}, edit, norm.gain, rotation, 1, test::appended_to(restored));
  ASSERT_EQ(restored.size(), ones.bytes.size());
  for (std::size_t row = 0; row < ones.map.out; ++row) {
    const std::size_t kept = 2 * (row * 16 + 3);
    ASSERT_EQ(restored[kept], std::byte{0x80}) << row;
    ASSERT_EQ(restored[kept + 1], std::byte{0x3f}) << row;
  }
  std::vector<double> values(ones.map.out * 16);
  decode(Dtype::BF16, restored, values);
  for (const double value : values) ASSERT_NEAR(value, 1.0, 0x1p-5);
}

TEST(RewriteMatrix, RangesLeaveOutTheMeanThatTheNormSubtracts) {
  const Ones ones(2);
  NormSpec norm{.kind = NormKind::rms, .width = 16};
  EXPECT_EQ(half_ranges({ones.tensor, ones.map}, norm, 1), std::vector<double>(2, 16.0));
  norm.kind = NormKind::layer;
  EXPECT_EQ(half_ranges({ones.tensor, ones.map}, norm, 1), std::vector<double>(2, 0.0));
  norm.gain.assign(16, 0.0);
  norm.gain[3] = -3e5;
  for (const double range : half_ranges({ones.tensor, ones.map}, norm, 1)) {
    EXPECT_NEAR(range, 4.0 * 3e5 * std::sqrt(15.0 / 16.0), 1e-8);
  }
  // Every block of features has a sphere of its own.
  norm = {.kind = NormKind::rms, .width = 16, .groups = 4};
  EXPECT_EQ(half_ranges({ones.tensor, ones.map}, norm, 1), std::vector<double>(2, 8.0));
}

TEST(RewriteMatrix, AConstantTableBecomesZero) {
  const Ones ones(16);
  UndoPart part;
  Certificate certificate;
  std::vector<std::byte> written;
  center_outputs({ones.tensor, ones.map}, {.kind = NormKind::layer, .width = 16}, 1,
                 test::appended_to(written), certificate, part);
  EXPECT_EQ(part.means, std::vector<double>(16, 1.0));
  EXPECT_TRUE(
      std::all_of(written.begin(), written.end(), [](std::byte byte) { return byte == std::byte{0}; }));
  EXPECT_EQ(certificate.relative_bound, 0.0);
  EXPECT_LE(certificate.bound, 1e-14);
}

}  // namespace
}  // namespace normscope::rewrite
