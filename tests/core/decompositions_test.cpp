#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/random.hpp>

namespace normscope {
namespace {

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

}  // namespace
}  // namespace normscope
