#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

#include "rewrite/copy.hpp"
#include "support/files.hpp"

namespace normscope::rewrite {
namespace {

using test::Copy;
using test::error_of;
using test::fixture;
using test::Rewritten;
using test::Scratch;

std::vector<double> random_rows(std::size_t size, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> rows(size);
  for (double& value : rows) value = random.normal();
  return rows;
}

/// Q, column by column of the identity, as a dense matrix in long double.
std::vector<long double> dense(const Rotation& rotation) {
  const std::size_t n = rotation.width();
  std::vector<long double> q(n * n);
  for (std::size_t j = 0; j < n; ++j) {
    std::vector<double> unit(n);
    unit[j] = 1.0;
    rotation.apply(unit);
    for (std::size_t i = 0; i < n; ++i) q[i * n + j] = unit[i];
  }
  return q;
}

RC_GTEST_PROP(RewriteRotation, IsOrthogonalToItsBound, ()) {
  const auto width = *rc::gen::inRange<std::size_t>(1, 90);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const bool keeps_ones = *rc::gen::arbitrary<bool>();
  const Rotation rotation = Rotation::random(width, seed, keeps_ones);
  const double error = rotation.error();
  RC_ASSERT(!keeps_ones || rotation.keeps_ones());
  const std::vector<long double> q = dense(rotation);
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      long double product = 0.0L;
      for (std::size_t k = 0; k < width; ++k) product += q[i * width + k] * q[j * width + k];
      RC_ASSERT(std::abs(static_cast<double>(product - (i == j ? 1.0L : 0.0L))) <= 4.0 * error);
    }
  }
  const std::vector<double> x = random_rows(3 * width, seed + 1);
  std::vector<double> y = x;
  rotation.apply(y, 2);
  for (std::size_t row = 0; row < 3; ++row) {
    double length = 0.0;
    for (std::size_t j = 0; j < width; ++j) length += x[row * width + j] * x[row * width + j];
    for (std::size_t i = 0; i < width; ++i) {
      long double exact = 0.0L;
      for (std::size_t j = 0; j < width; ++j) exact += q[i * width + j] * x[row * width + j];
      RC_ASSERT(std::abs(static_cast<double>(y[row * width + i] - exact)) <= 2.0 * error * std::sqrt(length));
    }
  }
  rotation.apply_transposed(y);
  for (std::size_t at = 0; at < x.size(); ++at) RC_ASSERT(std::abs(y[at] - x[at]) <= 1e-12);
  const Rotation again = Rotation::from_numbers(rotation.numbers(), width);
  std::vector<double> z = x;
  again.apply(z);
  rotation.apply(y = x);
  RC_ASSERT(y == z);
}

TEST(RewriteRotation, TheNearestMatrixIsOrthogonal) {
  for (const std::size_t width : {std::size_t{3}, std::size_t{64}, std::size_t{130}}) {
    std::vector<double> matrix(width * width);
    const std::vector<long double> q = dense(Rotation::random(width, 3, false));
    const std::vector<double> noise = random_rows(width * width, 4);
    for (std::size_t at = 0; at < matrix.size(); ++at) {
      matrix[at] = static_cast<double>(q[at]) + 1e-6 * noise[at];
    }
    const Rotation rotation = Rotation::nearest(matrix, width);
    std::vector<double> x = random_rows(width, 5);
    const std::vector<double> before = x;
    rotation.apply(x);
    double length = 0.0;
    double moved = 0.0;
    for (std::size_t j = 0; j < width; ++j) {
      length += x[j] * x[j] - before[j] * before[j];
      long double exact = 0.0L;
      for (std::size_t k = 0; k < width; ++k) exact += q[j * width + k] * before[k];
      moved = std::max(moved, std::abs(static_cast<double>(exact) - x[j]));
    }
    EXPECT_LE(std::abs(length), 1e-12);
    EXPECT_LE(moved, 1e-3);
    EXPECT_GT(moved, 0.0);
  }
  error_of(ErrorCode::Argument, [] { static_cast<void>(Rotation::nearest({1.0, 1.0, 0.0, 1.0}, 2)); });
}

TEST(RewriteRotation, OfOneFeatureKeepsOrFlipsIt) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    for (const bool keeps_ones : {false, true}) {
      const Rotation rotation = Rotation::random(1, seed, keeps_ones);
      std::vector<double> x = {3.0};
      rotation.apply(x);
      EXPECT_EQ(std::abs(x[0]), 3.0);
      EXPECT_TRUE(!keeps_ones || x[0] == 3.0) << x[0];
    }
  }
}

TEST(RewriteRotation, AnOrthogonalMatrixStays) {
  const std::vector<double> swap = {0.0, 1.0, 1.0, 0.0};
  std::vector<double> x = {1.0, 2.0};
  Rotation::nearest(swap, 2).apply(x);
  EXPECT_EQ(x, (std::vector<double>{2.0, 1.0}));
  EXPECT_TRUE(Rotation::nearest(swap, 2).keeps_ones());
}

TEST(RewriteRotation, NumbersOfNoRotationAreRefused) {
  const std::vector<double> good = Rotation::random(6, 1, true).numbers();
  static_cast<void>(Rotation::from_numbers(good, 6));
  const auto refuse = [](std::vector<double> numbers, std::size_t width) {
    EXPECT_NE(error_of(ErrorCode::Format, [&] { static_cast<void>(Rotation::from_numbers(numbers, width)); })
                  .find("its numbers are not those of a rotation"),
              std::string::npos)
        << testing::PrintToString(numbers) << " " << width;
  };
  const auto changed = [&](std::size_t at, double value) {
    std::vector<double> numbers = good;
    numbers[at] = value;
    return numbers;
  };
  refuse(good, 0);
  refuse({2.0, 1.0, 1.0}, 6);
  for (const double block : {4.0, 3.0, 0.0, -1.0, 1e30, std::nan("")}) refuse(changed(0, block), 6);
  refuse(changed(1, 0.0), 6);
  refuse(changed(2, 0.0), 6);
  for (const int more : {-1, 1}) {
    std::vector<double> numbers = good;
    numbers.resize(good.size() + static_cast<std::size_t>(more));
    refuse(numbers, 6);
  }
  refuse({good.begin(), good.begin() + 7}, 6);
}

// A forged recipe has any numbers.
TEST(RewriteRotation, NumbersWithoutAMatrixAreRefused) {
  const auto refuse = [](const std::vector<double>& numbers, std::size_t width) {
    error_of(ErrorCode::Format, [&] { static_cast<void>(Rotation::from_numbers(numbers, width)); });
  };
  refuse({1.0, 0.0, 0.0, 1.0}, 3);
  refuse({1.0, 0.0, 0.0, 1.0}, 1);
  refuse({1.0, 1.0, 0.0, 0.0, 1.0, -1.0, 1.0}, 3);
  refuse({4.0, 0.0, 0.0, 0.0, 1.0}, 4);
  refuse({1.0, 0.0, 1.0, 0.0, 1.0, 1.0}, 1);
  refuse({1e30, 0.0, 0.0, 0.0}, std::size_t{1} << 63U);
}

TEST(RewriteRotation, OutputsStayWithinTheirBounds) {
  struct Case {
    const char* name;
    bool centers;
  };
  for (const Case& item :
       {Case{"llama", false}, Case{"gpt2", true}, Case{"gpt2", false}, Case{"mixtral", false},
        Case{"falcon_40b", false}, Case{"stablelm", true}, Case{"gpt_oss", false}, Case{"phi", false},
        Case{"gemma", false}, Case{"nemotron", false}}) {
    for (const Dtype dtype : {Dtype::F32, Dtype::BF16}) {
      const Scratch scratch;
      const files::Checkpoint source = Copy(fixture(item.name)).stored_as(dtype).open(scratch / "in");
      const bool is_tied = models::describe(source).vocabulary->tied;
      const Rewritten rewritten(source,
                                {.fold_gains = true,
                                 .center = item.centers,
                                 .untie = is_tied,
                                 .rotation = RotationRequest{9, nullptr}},
                                scratch / "out");
      ASSERT_TRUE(rewritten.plan.rotations.at(0).rotation) << rewritten.plan.rotations.at(0).reason;
      std::vector<Activations> activations;
      for (const std::size_t norm : rewritten.plan.rotations[0].norms) {
        activations.push_back({norm, 5, random_rows(5 * rewritten.model.width, 3 + norm)});
      }
      const double rounding = dtype == Dtype::F32 ? 0x1p-24 : 0x1p-8;
      for (const NormOnRows& norm :
           compare_on_rows(source, rewritten.output, rewritten.model, rewritten.plan, activations)) {
        for (const ReaderOnRows& reader : norm.readers) {
          // Biases round once more.
          EXPECT_LE(reader.largest, 6.0 * rounding) << item.name << " " << reader.reader;
          EXPECT_GT(reader.largest, 0.0) << item.name << " " << reader.reader;
        }
      }
      for (const Certificate& certificate : rewritten.result.certificates) {
        EXPECT_LE(certificate.observed_in_double, 1e-13) << certificate.tensor;
        if (certificate.change == Change::rotate_inputs) {
          EXPECT_LE(certificate.observed_as_stored, certificate.relative_bound) << certificate.tensor;
        }
        if (certificate.change == Change::rotate_inputs || certificate.change == Change::rotate_outputs) {
          // A bias that the last norm keeps moves the logits too.
          const bool keeps_bias = certificate.tensor == "lm_head.weight";
          EXPECT_LE(certificate.relative_bound, (keeps_bias ? 2.5 : 1.01) * rounding) << certificate.tensor;
          EXPECT_GT(certificate.observed_as_stored, 0.0) << certificate.tensor;
        }
      }
    }
  }
}

// A tied table rotates once, as what writes the embedding and what reads the last norm.
TEST(RewriteRotation, ATiedTableStaysTied) {
  const Scratch scratch;
  Copy copy(fixture("gpt2"));
  for (double& gain : copy.tensors.at("transformer.ln_f.weight").values) gain = 1.0;
  const files::Checkpoint source = copy.open(scratch / "in");
  const Rewritten rewritten(source, {.fold_gains = true, .rotation = RotationRequest{1, nullptr}},
                            scratch / "out");
  ASSERT_TRUE(rewritten.plan.rotations.at(0).rotation) << rewritten.plan.rotations.at(0).reason;
  EXPECT_TRUE(rewritten.model_after.vocabulary->tied);
  EXPECT_EQ(rewritten.output.tensors().size(), source.tensors().size());
  const std::size_t last = rewritten.plan.rotations[0].norms.back();
  const std::vector<NormOnRows> tried =
      compare_on_rows(source, rewritten.output, rewritten.model, rewritten.plan,
                      {{last, 4, random_rows(4 * rewritten.model.width, 1)}});
  EXPECT_LE(tried.at(0).readers.at(0).relative, 1e-6);
  // The marker records the rotation, and a second rotation is different.
  EXPECT_NE(rewritten.output.metadata().at(marker_key).find("\"rotated\":true"), std::string::npos);
  const Rewritten second(rewritten.output, {.rotation = RotationRequest{2, nullptr}}, scratch / "second");
  EXPECT_TRUE(second.plan.rotations.at(0).rotation) << second.plan.rotations.at(0).reason;
}

TEST(RewriteRotation, RowsOfZerosAndConstantRowsHaveNoRelativeError) {
  const Scratch scratch;
  Copy copy(fixture("gpt2"));
  std::vector<double>& positions = copy.tensors.at("transformer.wpe.weight").values;
  std::fill(positions.begin(), positions.begin() + 18, 0.0);
  std::fill(positions.begin() + 18, positions.begin() + 36, 0.3);
  std::vector<double>& reader = copy.tensors.at("transformer.h.0.mlp.c_fc.weight").values;
  for (std::size_t j = 0; j < 18; ++j) reader[j * 20] = 0.0;
  const files::Checkpoint source = copy.open(scratch / "in");
  const Rewritten rewritten(
      source, {.fold_gains = true, .center = true, .untie = true, .rotation = RotationRequest{5, nullptr}},
      scratch / "out");
  for (const Certificate& certificate : rewritten.result.certificates) {
    EXPECT_TRUE(std::isfinite(certificate.undo_roundings)) << certificate.tensor;
    EXPECT_LE(certificate.relative_bound, 1.01 * 0x1p-24) << certificate.tensor;
    EXPECT_GT(certificate.bound, 0.0) << certificate.tensor;
    if (certificate.tensor == "transformer.h.0.mlp.c_fc.weight") break;
  }
  const std::vector<double> rotated = read(*rewritten.output.find("transformer.wpe.weight"));
  for (std::size_t j = 0; j < 36; ++j) EXPECT_NEAR(rotated[j], 0.0, 1e-15) << j;
}

TEST(RewriteRotation, RefusesByName) {
  const auto reason = [](const std::string& name, bool folds = true) {
    const files::Checkpoint source(fixture(name));
    const Plan plan = make_plan(source, models::describe(source),
                                {.fold_gains = folds, .rotation = RotationRequest{1, nullptr}});
    EXPECT_FALSE(plan.rotations.at(0).rotation) << name;
    for (const Edit& edit : plan.edits) EXPECT_FALSE(edit.rotation) << name;
    return plan.rotations.at(0).reason;
  };
  const auto mentions = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos ? testing::AssertionSuccess()
                                                : testing::AssertionFailure() << text;
  };
  EXPECT_TRUE(mentions(reason("llama", false), "input_layernorm has a gain, which folding gains"));
  EXPECT_TRUE(mentions(reason("gpt2"), "transformer.ln_f keeps its gain: its reader"));
  EXPECT_TRUE(mentions(reason("bert"), "post-norm"));
  EXPECT_TRUE(mentions(reason("gemma2"), "writes to the stream, whose features its gain scales"));
  EXPECT_TRUE(mentions(reason("dinov2"), "not all of what touches"));
  EXPECT_TRUE(mentions(reason("whisper"), "not all of what touches"));
  EXPECT_TRUE(mentions(reason("t5"), "writes to two streams"));
  EXPECT_TRUE(mentions(reason("bloom"), "post-norm"));
}

}  // namespace
}  // namespace normscope::rewrite
