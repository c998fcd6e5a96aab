#include <normscope/core/linear_algebra.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>

namespace normscope {
namespace {

std::vector<double> normal_entries(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> result(count);
  for (double& entry : result) entry = random.normal();
  return result;
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

}  // namespace
}  // namespace normscope
