#include <cmath>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <normscope/core/random.hpp>

#include "eigen.hpp"

namespace normscope::lab::dense {
namespace {

TEST(Dense, EigenvaluesOfKnownMatrices) {
  const Eigen two = symmetric_eigen({2.0, 1.0, 1.0, 2.0}, 2);
  EXPECT_NEAR(two.values[0], 3.0, 1e-15);
  EXPECT_NEAR(two.values[1], 1.0, 1e-15);
  EXPECT_EQ(symmetric_eigen({0.0, 0.0, 0.0, 0.0}, 2).values[0], 0.0);
  for (const int width : {1, 5, 40}) {
    Random random(static_cast<std::uint64_t>(width));
    const ::Eigen::MatrixXd half =
        ::Eigen::MatrixXd::NullaryExpr(width, width, [&] { return random.normal(); });
    const ::Eigen::MatrixXd whole = half + half.transpose();
    const ::Eigen::SelfAdjointEigenSolver<::Eigen::MatrixXd> solver(whole);
    const Eigen found =
        symmetric_eigen({whole.data(), whole.data() + whole.size()}, static_cast<std::size_t>(width));
    const double scale = solver.eigenvalues().cwiseAbs().maxCoeff();
    for (int i = 0; i < width; ++i) {
      EXPECT_NEAR(found.values[static_cast<std::size_t>(i)], solver.eigenvalues()[width - 1 - i],
                  1e-14 * width * scale);
    }
  }
}

}  // namespace
}  // namespace normscope::lab::dense
