#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/random.hpp>

#include "support/instruction_sets.hpp"

namespace normscope {
namespace {

/// A matrix with guard elements before, after and between its rows, which must not change.
template <typename T>
struct Stored {
  Stored(std::size_t row_count, std::size_t column_count, Random& random)
      : rows(row_count), columns(column_count), stride(column_count + 3), values((row_count + 1) * stride) {
    for (T& value : values) value = static_cast<T>(random.normal());
  }
  [[nodiscard]] MatrixView<T> view() { return {values.data(), rows, columns, stride}; }
  [[nodiscard]] T at(std::size_t i, std::size_t j) const { return values[i * stride + j]; }

  std::size_t rows, columns, stride;
  std::vector<T> values;
};

struct Shape {
  std::size_t m, k, n;
};

// Below, at and beyond every block and tile of every instruction set.
const Shape shapes[] = {{1, 1, 1},   {1, 7, 5},    {3, 3, 3},      {12, 16, 32},  {13, 17, 33},
                        {5, 700, 9}, {193, 3, 40}, {200, 513, 65}, {7, 20, 1030}, {31, 257, 31}};

template <typename T>
void expect_within_bound(Shape shape, bool transpose_a, bool transpose_b, Into into) {
  Random random(shape.m * 31 + shape.k * 7 + shape.n);
  Stored<T> a = transpose_a ? Stored<T>(shape.k, shape.m, random) : Stored<T>(shape.m, shape.k, random);
  Stored<T> b = transpose_b ? Stored<T>(shape.n, shape.k, random) : Stored<T>(shape.k, shape.n, random);
  Stored<T> c(shape.m, shape.n, random);
  const Stored<T> before = c;
  const auto factor = [](Stored<T>& matrix, bool transposed) {
    const Factor<T> as_it_stands = matrix.view();
    return transposed ? as_it_stands.transposed() : as_it_stands;
  };
  multiply(factor(a, transpose_a), factor(b, transpose_b), c.view(), into);
  const long double unit = std::numeric_limits<T>::epsilon() / 2.0L;
  for (std::size_t i = 0; i < shape.m; ++i) {
    for (std::size_t j = 0; j < shape.n; ++j) {
      long double exact = into == Into::add ? before.at(i, j) : T{0};
      long double magnitude = 0.0L;
      for (std::size_t p = 0; p < shape.k; ++p) {
        const long double term = static_cast<long double>(transpose_a ? a.at(p, i) : a.at(i, p)) *
                                 (transpose_b ? b.at(j, p) : b.at(p, j));
        exact += term;
        magnitude += std::abs(term);
      }
      const std::size_t roundings = shape.k + shape.k / 256 + 1;
      const auto count = static_cast<long double>(roundings);
      const long double own = into == Into::add ? 2.0L * std::abs(before.at(i, j)) : 0.0L;
      ASSERT_LE(std::abs(c.at(i, j) - exact), count * unit * magnitude + unit * (own + std::abs(exact)))
          << i << " " << j;
    }
  }
  for (std::size_t at = 0; at < c.values.size(); ++at) {
    if (at % c.stride >= shape.n || at / c.stride >= shape.m) {
      ASSERT_EQ(c.values[at], before.values[at]);
    }
  }
}

TEST(Product, IsWithinItsBound) {
  test::for_each_instruction_set([] {
    for (const Shape& shape : shapes) {
      SCOPED_TRACE(testing::Message() << shape.m << " " << shape.k << " " << shape.n);
      for (const int reading : {0, 1, 2, 3}) {
        for (const Into into : {Into::replace, Into::add}) {
          expect_within_bound<double>(shape, (reading & 1) != 0, (reading & 2) != 0, into);
          expect_within_bound<float>(shape, (reading & 1) != 0, (reading & 2) != 0, into);
        }
      }
    }
  });
}

TEST(Product, EntriesDoNotDependOnTheirNeighbours) {
  Random random(5);
  Stored<float> a(210, 600, random);
  Stored<float> b(600, 530, random);
  Stored<float> c(210, 530, random);
  multiply(Factor<float>(a.view()), Factor<float>(b.view()), c.view());
  for (const std::size_t i : {0U, 11U, 100U, 209U}) {
    for (const std::size_t j : {0U, 31U, 511U, 529U}) {
      float alone = 0.0F;
      multiply(Factor<float>(&a.values[i * a.stride], 1, 600, a.stride),
               Factor<float>(&b.values[j], 600, 1, b.stride), MatrixView<float>(&alone, 1, 1));
      EXPECT_EQ(alone, c.at(i, j)) << i << " " << j;
    }
  }
}

TEST(Product, NanStaysInItsRowAndColumn) {
  Random random(6);
  Stored<double> a(14, 20, random);
  Stored<double> b(20, 35, random);
  Stored<double> c(14, 35, random);
  a.values[3 * a.stride + 2] = std::nan("");
  b.values[5 * b.stride + 34] = std::nan("");
  multiply(Factor<double>(a.view()), Factor<double>(b.view()), c.view());
  for (std::size_t i = 0; i < 14; ++i) {
    for (std::size_t j = 0; j < 35; ++j)
      EXPECT_EQ(std::isnan(c.at(i, j)), i == 3 || j == 34) << i << " " << j;
  }
}

TEST(Product, OfNoTermsIsZeroOrNothing) {
  std::vector<double> c{1.0, 2.0};
  const MatrixView<double> view(c.data(), 1, 2);
  multiply(Factor<double>(nullptr, 1, 0, 0), Factor<double>(nullptr, 0, 2, 2), view, Into::add);
  EXPECT_EQ(c, (std::vector<double>{1.0, 2.0}));
  multiply(Factor<double>(nullptr, 1, 0, 0), Factor<double>(nullptr, 0, 2, 2), view);
  EXPECT_EQ(c, (std::vector<double>{0.0, 0.0}));
  multiply(Factor<double>(nullptr, 0, 3, 3), Factor<double>(c.data(), 3, 0, 0), MatrixView<double>());
}

}  // namespace
}  // namespace normscope
