#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/norm/kernels.hpp>
#include <normscope/norm/norm.hpp>

#include "norm/kernel_cases.hpp"
#include "support/instruction_sets.hpp"

namespace normscope::norm {
namespace {

using namespace test;

/// A layer with parameters of its own.
template <typename T>
struct Owned {
  Owned(NormKind kind, std::size_t width, std::size_t groups, double eps, bool gains, bool biases) {
    Random random(width + groups);
    for (std::size_t i = 0; gains && i < width; ++i) gain.push_back(static_cast<Wide<T>>(random.normal()));
    for (std::size_t i = 0; biases && i < width; ++i) bias.push_back(static_cast<Wide<T>>(random.normal()));
    layer = {.kind = kind, .width = width, .groups = groups, .eps = eps, .gain = gain, .bias = bias};
  }
  Owned(const Owned&) = delete;

  std::vector<Wide<T>> gain;
  std::vector<Wide<T>> bias;
  Layer<T> layer;
};

template <typename T>
class Kernels : public testing::Test {};
using Types = testing::Types<double, float, Bfloat16, Float16>;
TYPED_TEST_SUITE(Kernels, Types);

/// Worst error of y, in the units of the bound.
template <typename T>
double worst(const Layer<T>& layer, const T* x, const T* y) {
  const std::vector<double> expected = exact(layer, x);
  double result = 0.0;
  for (std::size_t i = 0; i < layer.width; ++i) {
    const double gain = layer.gain.empty() ? 1.0 : static_cast<double>(layer.gain[i]);
    const double bias = layer.bias.empty() ? 0.0 : static_cast<double>(layer.bias[i]);
    const double spread = std::abs(expected[i] - bias) + std::abs(gain);
    // The last rounding, to T, and what Wide<T> cannot hold.
    const double last = (half_place<T> + unit<T>)*std::abs(expected[i]) + unit<T> * std::abs(bias) +
                        least<T> + least<Wide<T>>;
    const double error = std::abs(number(y[i]) - expected[i]);
    // NaN must not compare as small.
    if (!(error <= std::numeric_limits<double>::max())) return error;
    result = std::max(result, (error - last) / (unit<T> * spread));
  }
  return result;
}

template <typename T>
void expect_bound_on_hard_rows(const Owned<T>& owned) {
  const std::size_t width = owned.layer.width;
  const std::vector<HardRow> hard = hard_rows<T>(width);
  Rows<T> x(hard.size(), width);
  Rows<T> y(hard.size(), width);
  for (std::size_t row = 0; row < hard.size(); ++row) x.set(row, hard[row].entries);
  normalize<T>(owned.layer, x.view(), y.view(), 1);
  for (std::size_t row = 0; row < hard.size(); ++row) {
    EXPECT_LE(worst(owned.layer, &x.at(row, 0), &y.at(row, 0)), 64.0)
        << hard[row].name << ", " << to_string(owned.layer.kind) << ", width " << width << " in "
        << owned.layer.groups << ", eps " << owned.layer.eps;
  }
}

TYPED_TEST(Kernels, MeetTheirBoundOnHardRows) {
  normscope::test::for_each_instruction_set([] {
    for (const NormKind kind : normscope::test::normalizing_kinds()) {
      for (const double eps : {1e-5, 0.0}) {
        for (const std::size_t width : {1U, 2U, 3U, 7U, 8U, 16U, 33U, 100U, 768U, 3001U}) {
          expect_bound_on_hard_rows(Owned<TypeParam>(kind, width, 1, eps, true, true));
        }
        for (const std::size_t groups : {2U, 3U, 8U, 24U, 48U}) {
          expect_bound_on_hard_rows(Owned<TypeParam>(kind, 96, groups, eps, true, groups != 2));
        }
      }
    }
  });
}

TYPED_TEST(Kernels, MeetTheirBoundAtAMillionEntries) {
  const std::size_t width = std::size_t{1} << 20U;
  const Owned<TypeParam> owned(NormKind::layer, width, 1, 1e-5, false, false);
  for (const HardRow& hard : hard_rows<TypeParam>(width)) {
    if (hard.name != "far mean" && hard.name != "first entry huge" && hard.name != "two levels") continue;
    Rows<TypeParam> x(1, width);
    x.set(0, hard.entries);
    Rows<TypeParam> y(1, width);
    normalize<TypeParam>(owned.layer, x.view(), y.view());
    EXPECT_LE(worst(owned.layer, &x.at(0, 0), &y.at(0, 0)), 64.0) << hard.name;
  }
}

TYPED_TEST(Kernels, AreAFewRoundingsFromExactOnOrdinaryRows) {
  normscope::test::for_each_instruction_set([] {
    for (const std::size_t width : {64U, 100U, 1024U, 5000U}) {
      for (const NormKind kind : {NormKind::layer, NormKind::rms}) {
        const Owned<TypeParam> owned(kind, width, 1, 1e-5, true, true);
        // On both sides of the limit up to which the mean is subtracted in one step.
        for (const double mean : {0.0, 1.6, 2.2}) {
          Rows<TypeParam> x = random_rows<TypeParam>(9, width, 3);
          for (TypeParam& value : x.values) value = element<TypeParam>(number(value) + mean);
          Rows<TypeParam> y(9, width);
          normalize<TypeParam>(owned.layer, x.view(), y.view());
          for (std::size_t row = 0; row < 9; ++row) {
            EXPECT_LE(worst(owned.layer, &x.at(row, 0), &y.at(row, 0)), 6.0) << width << " " << mean;
          }
        }
      }
    }
  });
}

TYPED_TEST(Kernels, AgreeWithThePlainDefinitionForEverySetOfParameters) {
  for (const std::size_t width : {5U, 40U, 200U}) {
    for (const int present : {0, 1, 2, 3}) {
      const Owned<TypeParam> owned(NormKind::layer, width, 1, 1e-3, (present & 1) != 0, (present & 2) != 0);
      const Rows<TypeParam> x = random_rows<TypeParam>(3, width, 9, 7, 3);
      Rows<TypeParam> y(3, width, 2, 1);
      normalize<TypeParam>(owned.layer, x.view(), y.view());
      NormSpec spec{.width = width, .eps = 1e-3};
      spec.gain.assign(owned.gain.begin(), owned.gain.end());
      spec.bias.assign(owned.bias.begin(), owned.bias.end());
      for (std::size_t row = 0; row < 3; ++row) {
        std::vector<double> plain(width);
        for (std::size_t i = 0; i < width; ++i) plain[i] = number(x.at(row, i));
        forward(spec, {plain.data(), 1, width}, {plain.data(), 1, width});
        for (std::size_t i = 0; i < width; ++i) {
          EXPECT_NEAR(number(y.at(row, i)), plain[i],
                      (16 * unit<TypeParam> + half_place<TypeParam>)*(2.0 + 2.0 * std::abs(plain[i])));
        }
      }
      // Nothing between the rows or before them is touched.
      for (std::size_t i = 0; i < y.values.size(); ++i) {
        const bool inside = i >= y.offset && (i - y.offset) % y.stride < width;
        EXPECT_TRUE(inside || same_bits(y.values[i], element<TypeParam>(77.0))) << i;
      }
    }
  }
}

TYPED_TEST(Kernels, BitsDoNotDependOnPlaceNeighboursOrThreads) {
  normscope::test::for_each_instruction_set([] {
    for (const std::size_t width : {6U, 100U, 1000U, 6000U}) {
      for (const std::size_t groups : {1U, 2U}) {
        const Owned<TypeParam> owned(NormKind::layer, width, groups, 1e-5, true, true);
        const std::size_t rows = 300'000 / width;
        const Rows<TypeParam> x = random_rows<TypeParam>(rows, width, 4);
        Rows<TypeParam> y(rows, width);
        normalize<TypeParam>(owned.layer, x.view(), y.view(), 3);
        for (std::size_t row = 0; row < rows; row += 1 + rows / 7) {
          for (const std::size_t offset : {0U, 1U, 5U}) {
            Rows<TypeParam> alone(1, width, 0, offset);
            std::copy_n(&x.at(row, 0), width, &alone.at(0, 0));
            normalize<TypeParam>(owned.layer, alone.view(), alone.view(), 1);
            for (std::size_t i = 0; i < width; ++i) {
              ASSERT_TRUE(same_bits(alone.at(0, i), y.at(row, i))) << width << " " << row << " " << i;
            }
          }
        }
      }
    }
  });
}

/// Blocks for which sums about the guess are just accurate enough, beside a neighbour for which they are not
/// and are computed again.
TYPED_TEST(Kernels, BitsOfAnUncentredBlockDoNotDependOnItsNeighbours) {
  const std::size_t width = 25;
  const auto row_of = [](std::size_t zeros, double value) {
    std::vector<double> row(zeros);
    row.resize(width, value);
    return row;
  };
  normscope::test::for_each_instruction_set([&] {
    const Owned<TypeParam> owned(NormKind::layer, width, 1, 0.0, false, false);
    const auto normalized = [&](const std::vector<std::vector<double>>& rows) {
      Rows<TypeParam> x(rows.size(), width);
      for (std::size_t row = 0; row < rows.size(); ++row) x.set(row, rows[row]);
      normalize<TypeParam>(owned.layer, x.view(), x.view());
      x.values.resize(width);
      return x.values;
    };
    for (int value = 1; value < 128; value += 2) {
      const std::vector<double> row = row_of(5, value);
      EXPECT_TRUE(same_bits(normalized({row}), normalized({row, row_of(4, 1.0), row}))) << value;
    }
  });
}

TYPED_TEST(Kernels, BitsOfFewWideRowsDoNotDependOnThreads) {
  for (const WideCase& wide : wide_cases) {
    SCOPED_TRACE(testing::Message() << wide.rows << " x " << wide.width << " in " << wide.groups);
    const Owned<TypeParam> owned(wide.kind, wide.width, wide.groups, 0.0, true, wide.rows != 2);
    const Rows<TypeParam> x = rows_of<TypeParam>(wide, 1, 3);
    const Rows<TypeParam> residual = rows_of<TypeParam>(wide, 2);
    const auto compare = [&] {
      Rows<TypeParam> alone(wide.rows, wide.width);
      normalize<TypeParam>(owned.layer, x.view(), alone.view(), 1);
      Rows<TypeParam> sum_alone = residual;
      Rows<TypeParam> y_alone(wide.rows, wide.width);
      add_normalize<TypeParam>(owned.layer, x.view(), sum_alone.view(), sum_alone.view(), y_alone.view(), 1);
      for (const unsigned threads : {2U, 13U}) {
        Rows<TypeParam> y = x;
        normalize<TypeParam>(owned.layer, y.view(), y.view(), threads);
        for (std::size_t row = 0; row < wide.rows; ++row) {
          for (std::size_t i = 0; i < wide.width; ++i) {
            ASSERT_TRUE(same_bits(y.at(row, i), alone.at(row, i))) << threads << ": " << row << " " << i;
          }
        }
        Rows<TypeParam> sum = residual;
        Rows<TypeParam> sum_y(wide.rows, wide.width);
        add_normalize<TypeParam>(owned.layer, x.view(), sum.view(), sum.view(), sum_y.view(), threads);
        EXPECT_TRUE(same_bits(sum.values, sum_alone.values)) << threads;
        EXPECT_TRUE(same_bits(sum_y.values, y_alone.values)) << threads;
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

TYPED_TEST(Kernels, BitsDoNotDependOnStreaming) {
  // Beyond the size that is streamed, with rows that start anywhere.
  const std::size_t width = 1003;
  const std::size_t rows = (std::size_t{1} << 24U) / (width * sizeof(TypeParam)) + 1;
  const Owned<TypeParam> owned(NormKind::rms, width, 1, 1e-5, true, false);
  const Rows<TypeParam> x = random_rows<TypeParam>(rows, width, 5);
  Rows<TypeParam> y(rows, width, 0, 1);
  normalize<TypeParam>(owned.layer, x.view(), y.view());
  Rows<TypeParam> few(1, width);
  for (std::size_t row = 0; row < rows; row += 1000) {
    normalize<TypeParam>(owned.layer, {&x.at(row, 0), 1, width}, few.view());
    for (std::size_t i = 0; i < width; ++i) {
      ASSERT_TRUE(same_bits(few.at(0, i), y.at(row, i))) << row << " " << i;
    }
  }
}

TEST(KernelsStreaming, StoresAreVisibleToANotifiedThread) {
  // Just beyond the size that is streamed.
  const std::size_t width = 4096;
  const std::size_t rows = 520;
  const Rows<float> x = random_rows<float>(rows, width, 6);
  Rows<float> dy(rows, width);
  std::fill(dy.values.begin(), dy.values.end(), 0.0F);
  // At the start of a line, where the heap gives memory 16 bytes after one.
  Rows<float> out(rows, width, 0, 12);
  std::vector<float> bias(width);
  std::atomic<int> written = 0;
  std::atomic<int> seen = 0;
  const auto told = [](const std::atomic<int>& turn, int now) {
    while (turn.load(std::memory_order_acquire) != now) {
    }
  };
  const int turns = 60;
  int late = 0;
  std::thread reader([&] {
    for (int now = 1; now <= turns; ++now) {
      told(written, now);
      // Forward leaves about `now` everywhere, backward zeros.
      const float expected = now % 2 == 0 ? 0.0F : 100.0F * static_cast<float>(now);
      // The last entry, which was written most recently.
      if (std::abs(out.at(rows - 1, width - 1) - expected) > 30.0F) ++late;
      seen.store(now, std::memory_order_release);
    }
  });
  for (int now = 1; now <= turns; ++now) {
    if (now % 2 == 0) {
      normalize_backward<float>({.width = width}, x.view(), dy.view(), out.view(), {}, 1);
    } else {
      std::fill(bias.begin(), bias.end(), 100.0F * static_cast<float>(now));
      normalize<float>({.width = width, .bias = bias}, x.view(), out.view(), 1);
    }
    written.store(now, std::memory_order_release);
    told(seen, now);
  }
  reader.join();
  EXPECT_EQ(late, 0);
}

TYPED_TEST(Kernels, AddedResidualGivesTheBitsOfTwoSteps) {
  normscope::test::for_each_instruction_set([] {
    for (const std::size_t width : {3U, 65U, 512U}) {
      const Owned<TypeParam> owned(NormKind::rms, width, 1, 1e-6, true, false);
      const Rows<TypeParam> x = random_rows<TypeParam>(5, width, 6);
      Rows<TypeParam> residual = random_rows<TypeParam>(5, width, 7, 3);
      Rows<TypeParam> added(5, width);
      for (std::size_t row = 0; row < 5; ++row) {
        for (std::size_t i = 0; i < width; ++i) {
          const auto sum = static_cast<Wide<TypeParam>>(number(x.at(row, i))) +
                           static_cast<Wide<TypeParam>>(number(residual.at(row, i)));
          added.at(row, i) = element<TypeParam>(static_cast<double>(sum));
        }
      }
      Rows<TypeParam> expected(5, width);
      normalize<TypeParam>(owned.layer, added.view(), expected.view());
      Rows<TypeParam> y(5, width);
      add_normalize<TypeParam>(owned.layer, x.view(), residual.view(), residual.view(), y.view());
      for (std::size_t row = 0; row < 5; ++row) {
        for (std::size_t i = 0; i < width; ++i) {
          EXPECT_TRUE(same_bits(residual.at(row, i), added.at(row, i)));
          EXPECT_TRUE(same_bits(y.at(row, i), expected.at(row, i)));
        }
      }
    }
  });
}

TYPED_TEST(Kernels, NanStaysInItsBlock) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const NormKind kind : normscope::test::normalizing_kinds()) {
    for (const double strange : {std::nan(""), infinity, -infinity}) {
      const Owned<TypeParam> owned(kind, 40, 2, 1e-5, true, true);
      Rows<TypeParam> x = random_rows<TypeParam>(3, 40, 8);
      Rows<TypeParam> y(3, 40);
      normalize<TypeParam>(owned.layer, x.view(), y.view());
      x.at(1, 3) = element<TypeParam>(strange);
      Rows<TypeParam> touched(3, 40);
      normalize<TypeParam>(owned.layer, x.view(), touched.view());
      EXPECT_TRUE(std::isnan(number(touched.at(1, 3))));
      for (std::size_t i = 0; i < 20; ++i) {
        const double value = number(touched.at(1, i));
        if (facts(kind).centers || std::isnan(strange)) {
          EXPECT_TRUE(std::isnan(value));
        } else if (i != 3) {
          EXPECT_EQ(value, number(element<TypeParam>(static_cast<double>(owned.bias[i]))));
        }
      }
      for (std::size_t row = 0; row < 3; ++row) {
        for (std::size_t i = row == 1 ? 20 : 0; i < 40; ++i) {
          EXPECT_TRUE(same_bits(touched.at(row, i), y.at(row, i)));
        }
      }
    }
  }
}

TYPED_TEST(Kernels, ConstantRowsGiveTheBias) {
  for (const double eps : {0.0, 1e-5}) {
    for (const std::size_t width : {1U, 9U, 64U, 5000U}) {
      const Owned<TypeParam> owned(NormKind::layer, width, 1, eps, true, true);
      for (const double value : {0.0, 1.0 / 3.0, 1e4 / 3.0}) {
        Rows<TypeParam> x(1, width);
        x.set(0, std::vector<double>(width, value));
        normalize<TypeParam>(owned.layer, x.view(), x.view());
        for (std::size_t i = 0; i < width; ++i) {
          EXPECT_EQ(number(x.at(0, i)), number(element<TypeParam>(static_cast<double>(owned.bias[i]))));
        }
      }
    }
  }
}

TYPED_TEST(Kernels, NoRowsAreFine) {
  const Owned<TypeParam> owned(NormKind::layer, 4, 1, 1e-5, true, true);
  const MatrixView<TypeParam> none(nullptr, 0, 4);
  normalize<TypeParam>(owned.layer, none, none);
  add_normalize<TypeParam>(owned.layer, none, none, none, none);
  std::vector<Wide<TypeParam>> gradient(4, Wide<TypeParam>{7});
  normalize_backward<TypeParam>(owned.layer, none, none, none, {.gain = gradient});
  EXPECT_EQ(gradient, std::vector<Wide<TypeParam>>(4, Wide<TypeParam>{0}));
}

TEST(KernelErrors, NameTheSizes) {
  const auto message = [](const Layer<float>& layer, std::size_t width) -> std::string {
    try {
      std::vector<float> x(width);
      normalize<float>(layer, {x.data(), 1, width}, {x.data(), 1, width});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::vector<float> two(2);
  EXPECT_EQ(message({.width = 4}, 3), "normalize: x is 1 x 3, expected 1 x 4");
  EXPECT_EQ(message({.width = 4, .groups = 3}, 4), "norm: 3 groups do not divide width 4");
  EXPECT_EQ(message({.width = 4, .gain = two}, 4), "normalize: gain has 2 entries, width is 4");
  EXPECT_EQ(message({.width = 1, .eps = -1}, 1), "norm: eps is -1, expected a finite number >= 0");
}

}  // namespace
}  // namespace normscope::norm
