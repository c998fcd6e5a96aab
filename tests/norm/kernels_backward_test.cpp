#include <gtest/gtest.h>

#include <normscope/norm/jacobian.hpp>
#include <normscope/norm/kernels.hpp>
#include <normscope/norm/norm.hpp>

#include "norm/kernel_cases.hpp"
#include "support/instruction_sets.hpp"

namespace normscope::norm {
namespace {

using namespace test;

template <typename T>
class KernelsBackward : public testing::Test {};
using Types = testing::Types<double, float, Bfloat16, Float16>;
TYPED_TEST_SUITE(KernelsBackward, Types);

template <typename T>
std::vector<Wide<T>> parameter(std::size_t width, std::uint64_t seed) {
  Random random(seed);
  std::vector<Wide<T>> values(width);
  for (Wide<T>& value : values) value = static_cast<Wide<T>>(random.normal());
  return values;
}

template <typename T>
std::vector<double> numbers(const Rows<T>& rows) {
  std::vector<double> values;
  for (std::size_t row = 0; row < rows.rows; ++row) {
    for (std::size_t i = 0; i < rows.width; ++i) values.push_back(number(rows.at(row, i)));
  }
  return values;
}

/// What the plain definitions give, and the sizes that the bounds are stated in.
struct Plain {
  std::vector<double> dx, gain, bias;
  std::vector<double> dx_size, gain_size, bias_size;
};

template <typename T>
Plain plain(const Layer<T>& layer, const Rows<T>& x, const Rows<T>& dy) {
  const std::size_t width = layer.width;
  const std::size_t n = width / layer.groups;
  const std::vector<double> from = numbers(x);
  const std::vector<double> slopes = numbers(dy);
  NormSpec spec{.kind = layer.kind, .width = width, .groups = layer.groups, .eps = layer.eps};
  std::vector<double> normalized(from.size());
  forward(spec, {from.data(), x.rows, width}, {normalized.data(), x.rows, width});
  spec.gain.assign(layer.gain.begin(), layer.gain.end());
  Plain result{std::vector<double>(from.size()), std::vector<double>(width), std::vector<double>(width),
               std::vector<double>(from.size()), std::vector<double>(width), std::vector<double>(width)};
  vector_jacobian(spec, {from.data(), x.rows, width}, {slopes.data(), x.rows, width},
                  {result.dx.data(), x.rows, width});
  const double divisor = layer.kind == NormKind::spherical ? 1.0 : static_cast<double>(n);
  for (std::size_t block = 0; block < from.size(); block += n) {
    double mean = 0.0;
    double square = 0.0;
    double of_a = 0.0;
    double along = 0.0;
    for (std::size_t i = block; i < block + n && layer.kind == NormKind::layer; ++i) {
      mean += from[i] / divisor;
    }
    for (std::size_t i = block; i < block + n; ++i) {
      const double a = std::abs(slopes[i] * spec.gain_at(i % width));
      square += (from[i] - mean) * (from[i] - mean) / divisor;
      of_a += a / divisor;
      along += a * std::abs(normalized[i]) / divisor;
    }
    for (std::size_t i = block; i < block + n; ++i) {
      const std::size_t feature = i % width;
      const double a = std::abs(slopes[i] * spec.gain_at(feature));
      result.dx_size[i] = (a + of_a + std::abs(normalized[i]) * along) / std::sqrt(square + layer.eps);
      result.gain[feature] += slopes[i] * normalized[i];
      result.bias[feature] += slopes[i];
      result.gain_size[feature] += std::abs(slopes[i]) * (1.0 + std::abs(normalized[i]));
      result.bias_size[feature] += std::abs(slopes[i]);
    }
  }
  return result;
}

template <typename T>
void expect_bounds(const Layer<T>& layer, std::size_t rows, unsigned threads, double mean = 0.0) {
  SCOPED_TRACE(testing::Message() << to_string(layer.kind) << " " << rows << " x " << layer.width << " in "
                                  << layer.groups);
  Rows<T> x = random_rows<T>(rows, layer.width, rows + layer.width, 3);
  for (T& value : x.values) value = element<T>(number(value) + mean);
  const Rows<T> dy = random_rows<T>(rows, layer.width, 2, 0, 1);
  Rows<T> dx(rows, layer.width, 1);
  std::vector<Wide<T>> gain(layer.width);
  std::vector<Wide<T>> bias(layer.width);
  normalize_backward<T>(layer, x.view(), dy.view(), dx.view(), {.gain = gain, .bias = bias}, threads);
  const Plain expected = plain(layer, x, dy);
  const std::vector<double> got = numbers(dx);
  const double u = unit<T>;
  // The plain product is itself off by that much.
  const double own = 1e-13;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double bound =
        (64 * u + own) * expected.dx_size[i] + half_place<T> * std::abs(expected.dx[i]) + least<T>;
    ASSERT_LE(std::abs(got[i] - expected.dx[i]), bound) << i;
  }
  for (std::size_t i = 0; i < layer.width; ++i) {
    ASSERT_LE(std::abs(static_cast<double>(gain[i]) - expected.gain[i]),
              (32 * u + own) * expected.gain_size[i]);
    ASSERT_LE(std::abs(static_cast<double>(bias[i]) - expected.bias[i]),
              (32 * u + own) * expected.bias_size[i]);
  }
}

TYPED_TEST(KernelsBackward, MeetTheirBound) {
  normscope::test::for_each_instruction_set([] {
    for (const NormKind kind : {NormKind::layer, NormKind::rms, NormKind::spherical}) {
      for (const std::size_t width : {1U, 2U, 6U, 16U, 35U, 384U, 3000U}) {
        const std::vector<Wide<TypeParam>> gain = parameter<TypeParam>(width, width);
        for (const std::size_t rows : {1U, 5U, 70U}) {
          expect_bounds<TypeParam>({.kind = kind, .width = width, .gain = gain}, rows, 1);
        }
        expect_bounds<TypeParam>({.kind = kind, .width = width}, 4, 1);
      }
      for (const std::size_t groups : {2U, 12U, 24U}) {
        const std::vector<Wide<TypeParam>> gain = parameter<TypeParam>(96, groups);
        expect_bounds<TypeParam>({.kind = kind, .width = 96, .groups = groups, .gain = gain}, 6, 1);
      }
    }
  });
}

TYPED_TEST(KernelsBackward, MeetTheirBoundFarFromTheOrigin) {
  const std::vector<Wide<TypeParam>> gain = parameter<TypeParam>(500, 1);
  expect_bounds<TypeParam>({.width = 500, .gain = gain}, 9, 1,
                           std::is_same_v<TypeParam, float> || std::is_same_v<TypeParam, double> ? 1e3 : 8.0);
}

TYPED_TEST(KernelsBackward, SumsDoNotLoseByTheirLength) {
  const std::vector<Wide<TypeParam>> gain = parameter<TypeParam>(20, 1);
  expect_bounds<TypeParam>({.width = 20, .gain = gain}, 20'000, 2);
}

TYPED_TEST(KernelsBackward, BitsDoNotDependOnThreadsOrWhatIsWanted) {
  const std::size_t rows = 1500;
  const std::size_t width = 500;
  const std::vector<Wide<TypeParam>> gain = parameter<TypeParam>(width, 1);
  const Layer<TypeParam> layer{.width = width, .gain = gain};
  const Rows<TypeParam> x = random_rows<TypeParam>(rows, width, 1);
  const Rows<TypeParam> dy = random_rows<TypeParam>(rows, width, 2);
  Rows<TypeParam> dx(rows, width);
  std::vector<Wide<TypeParam>> of_gain(width);
  std::vector<Wide<TypeParam>> of_bias(width);
  normalize_backward<TypeParam>(layer, x.view(), dy.view(), dx.view(), {.gain = of_gain, .bias = of_bias}, 1);
  Rows<TypeParam> in_place = dy;
  std::vector<Wide<TypeParam>> again(width);
  normalize_backward<TypeParam>(layer, x.view(), in_place.view(), in_place.view(), {.gain = again}, 3);
  EXPECT_EQ(again, of_gain);
  in_place = dy;
  normalize_backward<TypeParam>(layer, x.view(), in_place.view(), in_place.view(), {.bias = again}, 2);
  EXPECT_EQ(again, of_bias);
  Rows<TypeParam> alone(1, width);
  for (std::size_t row = 0; row < rows; row += 77) {
    normalize_backward<TypeParam>(layer, {&x.at(row, 0), 1, width}, {&dy.at(row, 0), 1, width}, alone.view());
    for (std::size_t i = 0; i < width; ++i) {
      ASSERT_TRUE(same_bits(alone.at(0, i), dx.at(row, i)));
      ASSERT_TRUE(same_bits(in_place.at(row, i), dx.at(row, i)));
    }
  }
}

TYPED_TEST(KernelsBackward, RowsWithoutDeviationPassNothingOn) {
  Rows<TypeParam> x(5, 12);
  for (TypeParam& value : x.values) value = element<TypeParam>(3.0);
  const Rows<TypeParam> dy = random_rows<TypeParam>(5, 12, 2);
  Rows<TypeParam> dx(5, 12);
  std::vector<Wide<TypeParam>> gain(12);
  normalize_backward<TypeParam>({.width = 12, .eps = 0.0}, x.view(), dy.view(), dx.view(), {.gain = gain});
  for (std::size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(gain[i], 0);
    for (std::size_t row = 0; row < 5; ++row) EXPECT_EQ(number(dx.at(row, i)), 0.0);
  }
}

TYPED_TEST(KernelsBackward, WhatIsNoNumberStaysInItsRow) {
  Rows<TypeParam> x = random_rows<TypeParam>(6, 40, 1);
  const Rows<TypeParam> dy = random_rows<TypeParam>(6, 40, 2);
  Rows<TypeParam> before(6, 40);
  Rows<TypeParam> after(6, 40);
  normalize_backward<TypeParam>({.width = 40}, x.view(), dy.view(), before.view());
  x.at(2, 7) = element<TypeParam>(std::nan(""));
  normalize_backward<TypeParam>({.width = 40}, x.view(), dy.view(), after.view());
  for (std::size_t row = 0; row < 6; ++row) {
    for (std::size_t i = 0; i < 40; ++i) {
      EXPECT_EQ(std::isnan(number(after.at(row, i))), row == 2);
      EXPECT_TRUE(row == 2 || same_bits(after.at(row, i), before.at(row, i)));
    }
  }
}

}  // namespace
}  // namespace normscope::norm
