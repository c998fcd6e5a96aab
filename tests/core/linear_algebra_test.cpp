#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/matrix_vector.hpp>
#include <normscope/core/random.hpp>

#include "support/gains.hpp"
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

std::vector<double> normal_entries(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> result(count);
  for (double& entry : result) entry = random.normal();
  return result;
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

TEST(Product, OfAVectorIsWithinItsBound) {
  test::for_each_instruction_set([] {
    Random random(11);
    for (const Shape& shape : shapes) {
      Stored<double> a(shape.m, shape.k, random);
      const std::vector<double> x = normal_entries(shape.m + shape.k, shape.n);
      for (const bool transposed : {false, true}) {
        const Factor<double> given = a.view();
        const Factor<double> factor = transposed ? given.transposed() : given;
        std::vector<double> y(factor.rows + 1, 5.0);
        multiply_vector(factor, {x.data(), factor.columns}, {y.data(), factor.rows});
        for (std::size_t i = 0; i < factor.rows; ++i) {
          long double exact = 0.0L;
          long double magnitude = 0.0L;
          for (std::size_t j = 0; j < factor.columns; ++j) {
            const long double term =
                static_cast<long double>(factor.data[i * factor.row_step + j * factor.column_step]) * x[j];
            exact += term;
            magnitude += std::abs(term);
          }
          ASSERT_LE(std::abs(y[i] - exact), static_cast<long double>(factor.columns) * 0x1p-52L * magnitude)
              << shape.m << " " << shape.k << " " << i;
        }
        EXPECT_EQ(y.back(), 5.0);
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

/// Largest |XᵀX − 1| over the entries, X (rows, rank).
double off_orthogonal(const std::vector<double>& x, std::size_t rank) {
  double worst = 0.0;
  for (std::size_t i = 0; i < rank; ++i) {
    for (std::size_t j = 0; j < rank; ++j) {
      double sum = i == j ? -1.0 : 0.0;
      for (std::size_t row = 0; row * rank < x.size(); ++row) sum += x[row * rank + i] * x[row * rank + j];
      worst = std::max(worst, std::abs(sum));
    }
  }
  return worst;
}

TEST(Svd, GivesBackItsMatrix) {
  for (const auto& [rows, columns] :
       {std::pair<std::size_t, std::size_t>{1, 1}, {7, 3}, {3, 7}, {40, 40}, {90, 50}}) {
    const std::vector<double> a = normal_entries(rows * columns, rows + columns);
    const Svd svd = singular_value_decomposition({a.data(), rows, columns, columns});
    const std::size_t rank = std::min(rows, columns);
    ASSERT_EQ(svd.values.size(), rank);
    EXPECT_TRUE(std::is_sorted(svd.values.rbegin(), svd.values.rend()));
    EXPECT_LT(off_orthogonal(svd.left, rank), 1e-13);
    EXPECT_LT(off_orthogonal(svd.right, rank), 1e-13);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        double sum = 0.0;
        for (std::size_t k = 0; k < rank; ++k) {
          sum += svd.left[i * rank + k] * svd.values[k] * svd.right[j * rank + k];
        }
        EXPECT_NEAR(sum, a[i * columns + j], 1e-13 * svd.values[0]);
      }
    }
  }
}

TEST(Svd, ReadsATransposeAndComputesOnlyRequestedVectors) {
  const std::vector<double> a = normal_entries(6 * 4, 5);
  const Factor<double> matrix(a.data(), 6, 4, 4);
  const Svd plain = singular_value_decomposition(matrix);
  const Svd transposed = singular_value_decomposition(matrix.transposed(), SingularVectors::left);
  EXPECT_TRUE(transposed.right.empty());
  ASSERT_EQ(transposed.left.size(), plain.right.size());
  for (std::size_t i = 0; i < plain.values.size(); ++i)
    EXPECT_NEAR(transposed.values[i], plain.values[i], 1e-14);
  for (std::size_t i = 0; i < plain.right.size(); ++i) {
    EXPECT_NEAR(std::abs(transposed.left[i]), std::abs(plain.right[i]), 1e-13);
  }
}

TEST(Svd, OfNothingIsEmpty) { EXPECT_TRUE(singular_value_decomposition({nullptr, 0, 2, 2}).values.empty()); }

TEST(Svd, OfAMatrixThatIsNotFiniteIsNaN) {
  const std::vector<double> a = {1.0, std::numeric_limits<double>::infinity()};
  const Svd svd = singular_value_decomposition({a.data(), 1, 2, 2});
  ASSERT_EQ(svd.right.size(), 2U);
  for (double entry : {svd.left.at(0), svd.values.at(0), svd.right[0], svd.right[1]})
    EXPECT_TRUE(std::isnan(entry));
}

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd random_matrix(Index rows, Index columns, std::uint64_t seed) {
  Random random(seed);
  MatrixXd matrix(rows, columns);
  for (double& entry : matrix.reshaped()) entry = random.normal();
  return matrix;
}

TEST(Decompositions, GiveBackTheirMatrix) {
  for (const auto& [rows, columns] : {std::pair<Index, Index>{1, 1}, {7, 3}, {3, 7}, {40, 40}}) {
    const MatrixXd matrix = random_matrix(rows, columns, 3);
    const ThinQr qr = thin_qr(matrix);
    const Index least = std::min(rows, columns);
    ASSERT_EQ(qr.basis.cols(), least);
    EXPECT_LT((qr.basis * qr.triangle - matrix).norm(), 1e-13 * matrix.norm());
    EXPECT_LT((qr.basis.transpose() * qr.basis - MatrixXd::Identity(least, least)).norm(), 1e-13);
    EXPECT_EQ(qr.triangle, triangle_of(matrix));
    EXPECT_TRUE(qr.triangle.isUpperTriangular(0.0));

    const MatrixXd gram = matrix.transpose() * matrix;
    const SymmetricEigen eigen = symmetric_eigen(gram);
    EXPECT_LT((eigen.vectors * eigen.values.asDiagonal() * eigen.vectors.transpose() - gram).norm(),
              1e-13 * gram.norm());
    EXPECT_TRUE(std::is_sorted(eigen.values.begin(), eigen.values.end()));
    EXPECT_LT((symmetric_eigenvalues(gram) - eigen.values).norm(), 1e-13 * gram.norm());
  }
}

TEST(Decompositions, SolveRegularSystems) {
  const MatrixXd matrix = random_matrix(12, 12, 4);
  const MatrixXd identity = MatrixXd::Identity(12, 12);
  EXPECT_LT((inverse_of(matrix) * matrix - identity).norm(), 1e-11);
  const MatrixXd positive = matrix * matrix.transpose() + identity;
  const MatrixXd factor = cholesky_factor(positive);
  EXPECT_TRUE(factor.isLowerTriangular(0.0));
  EXPECT_LT((factor * factor.transpose() - positive).norm(), 1e-13 * positive.norm());
  const VectorXd right = random_matrix(12, 1, 5);
  EXPECT_LT((positive * solve_positive(positive, right) - right).norm(), 1e-11);
}

TEST(Decompositions, SolveSystemsWithoutFullRank) {
  // Rank 3, in more rows than columns and the reverse.
  for (const auto& [rows, columns] : {std::pair<Index, Index>{9, 5}, {5, 9}}) {
    const MatrixXd matrix = random_matrix(rows, 3, 6) * random_matrix(3, columns, 7);
    const VectorXd right = random_matrix(rows, 1, 8);
    const CompleteOrthogonal complete(matrix, 1e-10);
    EXPECT_EQ(complete.rank(), 3);
    const MatrixXd image = complete.to_basis(matrix);
    EXPECT_LT(image.bottomRows(rows - 3).norm(), 1e-13 * matrix.norm());
    EXPECT_LT((complete.from_basis(image) - matrix).norm(), 1e-13 * matrix.norm());
    for (const VectorXd& found : {least_squares(matrix, right), complete.solve(right)}) {
      EXPECT_LT((matrix.transpose() * (matrix * found - right)).norm(), 1e-12 * matrix.squaredNorm());
      // The shortest solution is a combination of rows.
      EXPECT_LT((found - matrix.transpose() * least_squares(matrix.transpose(), found)).norm(),
                1e-11 * (1.0 + found.norm()));
    }
    const PivotedQr pivoted(matrix);
    const VectorXd pivots = pivoted.pivots();
    EXPECT_TRUE(std::is_sorted(pivots.begin(), pivots.end(), std::greater<>()));
    EXPECT_LT(pivots[3], 1e-13 * pivots[0]);
    const MatrixXd basis = pivoted.basis(3);
    EXPECT_LT((basis * (basis.transpose() * matrix) - matrix).norm(), 1e-13 * matrix.norm());
    EXPECT_LT((matrix.transpose() * (matrix * pivoted.solve(right) - right)).norm(),
              1e-12 * matrix.squaredNorm());
  }
}

TEST(Decompositions, OfNothingAreEmpty) {
  const MatrixXd triangle = triangle_of(MatrixXd(0, 5));
  EXPECT_EQ(triangle.rows(), 0);
  EXPECT_EQ(triangle.cols(), 5);
}

TEST(Decompositions, OnlyPositiveDefiniteMatricesHaveACholeskyFactor) {
  MatrixXd matrix = MatrixXd::Identity(4, 4);
  EXPECT_TRUE(has_cholesky_factor(matrix));
  matrix(2, 2) = -1e-3;
  EXPECT_FALSE(has_cholesky_factor(matrix));
  matrix(2, 2) = std::nan("");
  EXPECT_FALSE(has_cholesky_factor(matrix));
}

struct Problem {
  std::vector<double> poles;
  std::vector<double> weights;
};

Problem problem(std::size_t width, const std::string& shape, std::uint64_t seed) {
  std::vector<double> squares = test::random_gain(width, shape, seed);
  for (double& g : squares) g *= g;
  std::sort(squares.begin(), squares.end());
  Problem result;
  for (const double square : squares) {
    if (result.poles.empty() || square > result.poles.back()) {
      result.poles.push_back(square);
      result.weights.push_back(0.0);
    }
    result.weights.back() += 1.0;
  }
  return result;
}

class SecularShapes : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  Problem given() const {
    const auto& [shape, width] = GetParam();
    return problem(width, shape, 100 + width);
  }
};

TEST_P(SecularShapes, RootsMatchTheReferenceToRoundingOfTheirOffset) {
  const Problem p = given();
  const auto roots = secular_roots(p.poles, p.weights);
  const auto expected = secular_roots_reference(p.poles, p.weights);
  ASSERT_EQ(roots.size(), expected.size());
  for (std::size_t k = 0; k < roots.size(); ++k) {
    const auto from_left = [&](const SecularRoot& root) {
      return (p.poles[root.origin] - p.poles[k]) + root.offset;
    };
    const double gap = p.poles[k + 1] - p.poles[k];
    EXPECT_NEAR(from_left(roots[k]) / gap, from_left(expected[k]) / gap, 1e-13) << "gap " << k;
    if (roots[k].origin == expected[k].origin) {
      EXPECT_NEAR(roots[k].offset / expected[k].offset, 1.0, 2e-12) << "gap " << k;
    }
  }
}

TEST_P(SecularShapes, EachRootLiesStrictlyInItsGap) {
  const Problem p = given();
  const auto roots = secular_roots(p.poles, p.weights);
  for (std::size_t k = 0; k < roots.size(); ++k) {
    const double half = 0.5 * (p.poles[k + 1] - p.poles[k]) * (1.0 + 1e-15);
    if (roots[k].origin == k) {
      EXPECT_TRUE(roots[k].offset > 0.0 && roots[k].offset <= half) << k;
    } else {
      EXPECT_EQ(roots[k].origin, k + 1);
      EXPECT_TRUE(roots[k].offset < 0.0 && roots[k].offset >= -half) << k;
    }
  }
}

TEST_P(SecularShapes, ResidualIsAtRoundingLevel) {
  const Problem p = given();
  for (const SecularRoot& root : secular_roots(p.poles, p.weights)) {
    long double sum = 0.0L;
    long double magnitude = 0.0L;
    for (std::size_t i = 0; i < p.poles.size(); ++i) {
      const long double term =
          p.weights[i] / ((static_cast<long double>(p.poles[i]) - p.poles[root.origin]) - root.offset);
      sum += term;
      magnitude += std::abs(term);
    }
    EXPECT_LE(std::abs(sum), 64.0L * 0x1p-53L * magnitude);
  }
}

TEST_P(SecularShapes, ThreadsDoNotChangeABit) {
  const Problem p = given();
  const auto one = secular_roots(p.poles, p.weights, 1);
  const auto many = secular_roots(p.poles, p.weights, 5);
  for (std::size_t k = 0; k < one.size(); ++k) {
    ASSERT_EQ(one[k].origin, many[k].origin);
    ASSERT_EQ(one[k].offset, many[k].offset);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SecularShapes,
                         testing::Combine(testing::Values("ordinary", "wide", "signed", "crowded", "repeated",
                                                          "zeros", "outlier"),
                                          testing::Values(2, 3, 7, 64, 300)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + std::to_string(std::get<1>(instance.param));
                         });

TEST(Secular, FewerThanTwoPolesHaveNoRoot) {
  const double pole = 1.0;
  EXPECT_TRUE(secular_roots({}, {}).empty());
  EXPECT_TRUE(secular_roots({&pole, 1}, {&pole, 1}).empty());
}

TEST(Secular, TwoEqualWeightsMeetHalfWay) {
  const std::vector<double> poles{1.0, 3.0};
  const std::vector<double> weights{1.0, 1.0};
  const auto roots = secular_roots(poles, weights);
  ASSERT_EQ(roots.size(), 1U);
  EXPECT_DOUBLE_EQ(poles[roots[0].origin] + roots[0].offset, 2.0);
}

TEST(Secular, ALargeWeightMovesTheRootToTheOtherPole) {
  // 1e30/(0 − ζ) + 1/(1 − ζ) = 0 has ζ = 1e30/(1e30 + 1): 1e-30 below the pole at 1.
  const std::vector<double> poles{0.0, 1.0};
  const std::vector<double> weights{1e30, 1.0};
  const auto roots = secular_roots(poles, weights);
  EXPECT_EQ(roots[0].origin, 1U);
  EXPECT_NEAR(roots[0].offset / -1e-30, 1.0, 1e-14);
}

}  // namespace

}  // namespace normscope
