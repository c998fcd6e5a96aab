#include <gtest/gtest.h>

#include <normscope/norm/kernels.hpp>
#include <normscope/norm/norm.hpp>

#include "norm/backward_cases.hpp"
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
Backward<T> backward_of(const Layer<T>& layer, const Rows<T>& x, const Rows<T>& dy, unsigned threads = 1) {
  Backward<T> got(x.rows, x.width, 1);
  normalize_backward<T>(layer, x.view(), dy.view(), got.dx.view(), {.gain = got.gain, .bias = got.bias},
                        threads);
  return got;
}

template <typename T>
void expect_bounds(const Layer<T>& layer, const Rows<T>& x, const Rows<T>& dy, unsigned threads = 1) {
  SCOPED_TRACE(testing::Message() << to_string(layer.kind) << " " << x.rows << " x " << layer.width << " in "
                                  << layer.groups << " eps " << layer.eps);
  test::expect_bounds(backward_of(layer, x, dy, threads), exact_backward(layer, x, dy), 64.0, 32.0);
}

template <typename T>
void expect_bounds(const Layer<T>& layer, std::size_t rows, double mean = 0.0) {
  Rows<T> x = random_rows<T>(rows, layer.width, rows + layer.width, 3);
  for (T& value : x.values) value = element<T>(number(value) + mean);
  expect_bounds(layer, x, random_rows<T>(rows, layer.width, 2, 0, 1));
}

/// Within the sum of both bounds of `backward`, with rows that start `place` elements later than necessary
/// and lie as many apart, into a matrix of its own and over dy; nothing beside the rows is touched.
template <typename T>
void expect_plain(const Layer<T>& layer, std::size_t place) {
  SCOPED_TRACE(testing::Message() << to_string(layer.kind) << " " << layer.width << " in " << layer.groups
                                  << " at " << place);
  const std::size_t rows = 3;
  const Rows<T> x = random_rows<T>(rows, layer.width, 1, place, place);
  const Rows<T> dy = random_rows<T>(rows, layer.width, 2, 2 * place, place);
  NormSpec spec{.kind = layer.kind, .width = layer.width, .groups = layer.groups, .eps = layer.eps};
  spec.gain.assign(layer.gain.begin(), layer.gain.end());
  ExactGradients plain = exact_backward(layer, x, dy);
  const Rows<double> wide_x = as_double(x);
  Rows<double> dx = as_double(dy);
  backward(spec, wide_x.view(), dx.view(), dx.view(), plain.gain, plain.bias);
  plain.dx = dx.values;
  Backward<T> got(rows, layer.width, place, 1);
  normalize_backward<T>(layer, x.view(), dy.view(), got.dx.view(), {.gain = got.gain, .bias = got.bias});
  test::expect_bounds(got, plain, 64.0 + 16.0, 32.0 + 12.0);
  Rows<T> in_place = dy;
  normalize_backward<T>(layer, x.view(), in_place.view(), in_place.view());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < layer.width; ++i) {
      ASSERT_TRUE(same_bits(in_place.at(row, i), got.dx.at(row, i)));
    }
  }
  for (const Rows<T>* written : {&got.dx, &in_place}) {
    for (std::size_t i = 0; i < written->values.size(); ++i) {
      const bool inside = i >= written->offset && (i - written->offset) % written->stride < layer.width;
      ASSERT_TRUE(inside || same_bits(written->values[i], element<T>(77.0))) << i;
    }
  }
}

/// Copies the rows a multiple of 4 KB apart, from the beginning of a page on.
template <typename T>
Rows<T> in_pages(const Rows<T>& given) {
  const std::size_t page = 4096 / sizeof(T);
  Rows<T> result(given.rows, given.width, (page - given.width % page) % page, page);
  result.offset -= reinterpret_cast<std::uintptr_t>(result.values.data()) % 4096 / sizeof(T);
  for (std::size_t row = 0; row < given.rows; ++row) {
    for (std::size_t i = 0; i < given.width; ++i) result.at(row, i) = given.at(row, i);
  }
  return result;
}

TYPED_TEST(KernelsBackward, BitsAreThoseOfRowsWhoseLinesDoNotShareCacheSets) {
  using T = TypeParam;
  normscope::test::for_each_instruction_set([] {
    for (const std::size_t width : {500U, 768U, 1024U, 1030U, 2048U}) {
      const std::vector<Wide<T>> gain = parameter<T>(width, width);
      const Layer<T> layer{.width = width, .gain = gain};
      const Rows<T> x = random_rows<T>(9, width, 1, 3);
      const Rows<T> dy = random_rows<T>(9, width, 2, 5);
      Backward<T> apart(9, width, 7);
      normalize_backward<T>(layer, x.view(), dy.view(), apart.dx.view(),
                            {.gain = apart.gain, .bias = apart.bias});
      Backward<T> got(9, width);
      got.dx = in_pages(got.dx);
      normalize_backward<T>(layer, in_pages(x).view(), in_pages(dy).view(), got.dx.view(),
                            {.gain = got.gain, .bias = got.bias});
      for (std::size_t row = 0; row < 9; ++row) {
        for (std::size_t i = 0; i < width; ++i) {
          ASSERT_TRUE(same_bits(got.dx.at(row, i), apart.dx.at(row, i))) << width << " " << row << " " << i;
        }
      }
      EXPECT_EQ(got.gain, apart.gain);
      EXPECT_EQ(got.bias, apart.bias);
    }
  });
}

TYPED_TEST(KernelsBackward, MeetTheirBound) {
  normscope::test::for_each_instruction_set([] {
    for (const NormKind kind : normscope::test::normalizing_kinds()) {
      for (const std::size_t width : {1U, 2U, 6U, 16U, 35U, 384U, 3000U}) {
        const std::vector<Wide<TypeParam>> gain = parameter<TypeParam>(width, width);
        for (const std::size_t rows : {1U, 5U, width < 1000 ? 70U : 9U}) {
          expect_bounds<TypeParam>({.kind = kind, .width = width, .gain = gain}, rows);
        }
        expect_bounds<TypeParam>({.kind = kind, .width = width}, 4);
      }
      for (const std::size_t groups : {2U, 12U, 24U}) {
        const std::vector<Wide<TypeParam>> gain = parameter<TypeParam>(96, groups);
        expect_bounds<TypeParam>({.kind = kind, .width = 96, .groups = groups, .gain = gain}, 6);
      }
    }
  });
}

TYPED_TEST(KernelsBackward, MeetTheirBoundFarFromTheOrigin) {
  const std::vector<Wide<TypeParam>> gain = parameter<TypeParam>(500, 1);
  expect_bounds<TypeParam>({.width = 500, .gain = gain}, 9,
                           std::is_same_v<TypeParam, float> || std::is_same_v<TypeParam, double> ? 1e3 : 8.0);
}

TYPED_TEST(KernelsBackward, MeetTheirBoundOnHardRows) {
  normscope::test::for_each_instruction_set([] {
    for (const NormKind kind : normscope::test::normalizing_kinds()) {
      for (const double eps : {0.0, 1e-5}) {
        for (const std::size_t width : {2U, 9U, 64U, 530U, 2600U}) {
          const std::vector<Wide<TypeParam>> gain = parameter<TypeParam>(width, width);
          const Rows<TypeParam> dy = random_rows<TypeParam>(1, width, width);
          for (const HardRow& hard : hard_rows<TypeParam>(width)) {
            SCOPED_TRACE(hard.name);
            Rows<TypeParam> x(1, width);
            x.set(0, hard.entries);
            expect_bounds<TypeParam>({.kind = kind, .width = width, .eps = eps, .gain = gain}, x, dy);
          }
        }
      }
    }
  });
}

/// Groups of small blocks, whose rows go through other paths than whole ones.
TYPED_TEST(KernelsBackward, MeetTheirBoundOnHardBlocks) {
  normscope::test::for_each_instruction_set([] {
    for (const std::size_t block : {4U, 16U, 48U}) {
      const std::vector<HardRow> hard = hard_rows<TypeParam>(block);
      const std::size_t width = block * hard.size();
      const std::vector<Wide<TypeParam>> gain = parameter<TypeParam>(width, width);
      Rows<TypeParam> x(1, width);
      for (std::size_t group = 0; group < hard.size(); ++group) {
        for (std::size_t i = 0; i < block; ++i) {
          x.at(0, group * block + i) = element<TypeParam>(hard[group].entries[i]);
        }
      }
      const Rows<TypeParam> dy = random_rows<TypeParam>(1, width, block);
      for (const double eps : {0.0, 1e-5}) {
        expect_bounds<TypeParam>({.width = width, .groups = hard.size(), .eps = eps, .gain = gain}, x, dy);
      }
    }
  });
}

TYPED_TEST(KernelsBackward, MeetTheirBoundForGradientsOfEverySize) {
  const bool wide = std::is_same_v<TypeParam, double>;
  const bool narrow = std::is_same_v<TypeParam, Float16>;
  const int of_x = wide ? 400 : narrow ? 10 : 45;
  const int of_dy = wide ? 400 : narrow ? 8 : 60;
  normscope::test::for_each_instruction_set([&] {
    for (const std::size_t width : {16U, 600U, 2600U}) {
      const std::vector<Wide<TypeParam>> gain = parameter<TypeParam>(width, 1);
      for (const int x_exponent : {-of_x, 0, of_x}) {
        for (const int dy_exponent : {-of_dy, of_dy}) {
          SCOPED_TRACE(testing::Message() << "x 2^" << x_exponent << " dy 2^" << dy_exponent);
          const Rows<TypeParam> x = random_rows<TypeParam>(2, width, 1, 0, 0, x_exponent);
          const Rows<TypeParam> dy = random_rows<TypeParam>(2, width, 2, 0, 0, dy_exponent);
          expect_bounds<TypeParam>({.width = width, .eps = 0.0, .gain = gain}, x, dy);
        }
      }
    }
  });
}

TYPED_TEST(KernelsBackward, AgreeWithThePlainDefinitionInEveryShape) {
  normscope::test::for_each_instruction_set([] {
    for (const std::size_t width : {1U, 2U, 3U, 8U, 17U, 40U, 64U, 100U, 129U, 600U}) {
      const std::vector<Wide<TypeParam>> gain = parameter<TypeParam>(width, width);
      for (const NormKind kind : normscope::test::normalizing_kinds()) {
        for (const std::size_t groups : {1U, 2U, 5U, 25U}) {
          if (width % groups != 0) continue;
          for (const std::size_t place : {0U, 1U, 5U}) {
            expect_plain<TypeParam>(
                {.kind = kind, .width = width, .groups = groups, .eps = 1e-3, .gain = gain}, place);
          }
        }
      }
    }
  });
}

TYPED_TEST(KernelsBackward, SumsDoNotLoseByTheirLength) {
  const std::vector<Wide<TypeParam>> gain = parameter<TypeParam>(20, 1);
  const Rows<TypeParam> x = random_rows<TypeParam>(20'000, 20, 1);
  const Rows<TypeParam> dy = random_rows<TypeParam>(20'000, 20, 2);
  expect_bounds<TypeParam>({.width = 20, .gain = gain}, x, dy, 2);
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

TYPED_TEST(KernelsBackward, BitsOfFewWideRowsDoNotDependOnThreadsOrWhatIsWanted) {
  for (const WideCase& wide : wide_cases) {
    SCOPED_TRACE(testing::Message() << wide.rows << " x " << wide.width << " in " << wide.groups);
    const std::vector<Wide<TypeParam>> gain = parameter<TypeParam>(wide.width, 1);
    const Layer<TypeParam> layer{
        .kind = wide.kind, .width = wide.width, .groups = wide.groups, .eps = 0.0, .gain = gain};
    const Rows<TypeParam> x = rows_of<TypeParam>(wide, 1, 3);
    const Rows<TypeParam> dy = random_rows<TypeParam>(wide.rows, wide.width, 2);
    const auto compare = [&] {
      Backward<TypeParam> alone(wide.rows, wide.width);
      normalize_backward<TypeParam>(layer, x.view(), dy.view(), alone.dx.view(),
                                    {.gain = alone.gain, .bias = alone.bias}, 1);
      for (const unsigned threads : {2U, 13U}) {
        Backward<TypeParam> all(wide.rows, wide.width);
        normalize_backward<TypeParam>(layer, x.view(), dy.view(), all.dx.view(),
                                      {.gain = all.gain, .bias = all.bias}, threads);
        EXPECT_TRUE(same_bits(all.dx.values, alone.dx.values)) << threads;
        EXPECT_TRUE(same_bits(all.gain, alone.gain)) << threads;
        EXPECT_TRUE(same_bits(all.bias, alone.bias)) << threads;
        Rows<TypeParam> in_place = dy;
        normalize_backward<TypeParam>(layer, x.view(), in_place.view(), in_place.view(), {}, threads);
        EXPECT_TRUE(same_bits(in_place.values, alone.dx.values)) << threads;
        in_place = dy;
        normalize_backward<TypeParam>(layer, x.view(), in_place.view(), in_place.view(), {.gain = all.bias},
                                      threads);
        EXPECT_TRUE(same_bits(in_place.values, alone.dx.values)) << threads;
        EXPECT_TRUE(same_bits(all.bias, alone.gain)) << threads;
      }
    };
    // Only the best instruction set is tested with the larger ones, to save time.
    if (wide.rows * wide.width < 600'000) {
      normscope::test::for_each_instruction_set(compare);
    } else {
      compare();
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

TYPED_TEST(KernelsBackward, NanStaysInItsBlock) {
  normscope::test::for_each_instruction_set([] {
    for (const double strange : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
      for (const bool in_x : {true, false}) {
        Rows<TypeParam> x = random_rows<TypeParam>(9, 40, 1);
        Rows<TypeParam> dy = random_rows<TypeParam>(9, 40, 2);
        Backward<TypeParam> before(9, 40), after(9, 40);
        const Layer<TypeParam> layer{.width = 40, .groups = 2};
        normalize_backward<TypeParam>(layer, x.view(), dy.view(), before.dx.view(),
                                      {.gain = before.gain, .bias = before.bias});
        (in_x ? x : dy).at(2, 27) = element<TypeParam>(strange);
        normalize_backward<TypeParam>(layer, x.view(), dy.view(), after.dx.view(),
                                      {.gain = after.gain, .bias = after.bias});
        for (std::size_t i = 0; i < 40; ++i) {
          const bool touched = i >= 20;
          for (std::size_t row = 0; row < 9; ++row) {
            const TypeParam& value = after.dx.at(row, i);
            EXPECT_EQ(!std::isfinite(number(value)), row == 2 && touched) << row << " " << i;
            EXPECT_TRUE((row == 2 && touched) || same_bits(value, before.dx.at(row, i))) << row << " " << i;
          }
          // An entry of dy meets its own feature alone, one of x all of its block.
          const bool in_sums = in_x ? touched : i == 27;
          EXPECT_EQ(std::isfinite(after.gain[i]), !in_sums) << i;
          EXPECT_EQ(std::isfinite(after.bias[i]), in_x || i != 27) << i;
          EXPECT_TRUE(in_sums || after.gain[i] == before.gain[i]) << i;
        }
      }
    }
  });
}

}  // namespace
}  // namespace normscope::norm
