#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/numeric/eigen/decompositions.hpp>

namespace normscope {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;

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
