#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <normscope/core/error.hpp>
#include <normscope/norm/image.hpp>

#include "support/gains.hpp"

namespace normscope::norm {
namespace {

using Matrix = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic>;

/// R² G Π G, entry by entry, in extended precision.
Matrix image_matrix(const NormSpec& spec) {
  Matrix result = Matrix::Zero(spec.width, spec.width);
  const std::size_t block = spec.block_width();
  for (std::size_t i = 0; i < spec.width; ++i) {
    for (std::size_t j = 0; j < spec.width; ++j) {
      if (i / block != j / block) continue;
      const long double centring = spec.centers() ? 1.0L / static_cast<long double>(block) : 0.0L;
      result(i, j) = (i == j ? 1.0L : 0.0L) - centring;
      result(i, j) *=
          static_cast<long double>(spec.gain_at(i)) * spec.gain_at(j) * spec.radius() * spec.radius();
    }
  }
  return result;
}

/// Semi-axes by a dense eigensolver in extended precision, descending.
std::vector<double> dense_semi_axes(const NormSpec& spec) {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(image_matrix(spec), Eigen::EigenvaluesOnly);
  std::vector<double> result;
  for (Eigen::Index i = solver.eigenvalues().size(); i-- > 0;) {
    result.push_back(static_cast<double>(std::sqrt(std::max(0.0L, solver.eigenvalues()[i]))));
  }
  return result;
}

std::vector<double> all_axes(const NormImage& image, std::size_t width) {
  std::vector<double> axes(image.semi_axes().size() * width);
  image.axes(0, {axes.data(), image.semi_axes().size(), width});
  return axes;
}

/// Largest entry of |V Vᵀ − I| over all axes and the null space together: a whole orthonormal basis.
double worst_orthogonality(const NormImage& image, std::size_t width) {
  std::vector<double> basis = all_axes(image, width);
  basis.resize(width * width);
  image.null_space({basis.data() + image.semi_axes().size() * width, image.null_space_dim(), width});
  const Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> v(
      basis.data(), static_cast<Eigen::Index>(width), static_cast<Eigen::Index>(width));
  return (v * v.transpose() - Eigen::MatrixXd::Identity(v.rows(), v.rows())).cwiseAbs().maxCoeff();
}

class ImageShapes : public testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  NormSpec spec() const {
    const auto& [shape, width] = GetParam();
    return {.width = static_cast<std::size_t>(width), .gain = test::random_gain(width, shape, 7 + width)};
  }
};

TEST_P(ImageShapes, AxesAndNullSpaceFormAnOrthonormalBasis) {
  const NormSpec given = spec();
  EXPECT_LE(worst_orthogonality(NormImage(given), given.width), 1e-12);
}

TEST_P(ImageShapes, AxesDiagonalizeTheImageMatrix) {
  const NormSpec given = spec();
  const NormImage image(given);
  const Matrix m = image_matrix(given);
  const std::vector<double> axes = all_axes(image, given.width);
  const std::span<const double> lengths = image.semi_axes();
  for (std::size_t rank = 0; rank < lengths.size(); ++rank) {
    const Eigen::Matrix<long double, Eigen::Dynamic, 1> v =
        Eigen::Map<const Eigen::VectorXd>(axes.data() + rank * given.width,
                                          static_cast<Eigen::Index>(given.width))
            .cast<long double>();
    const long double square = static_cast<long double>(lengths[rank]) * lengths[rank];
    const long double residual = (m * v - square * v).norm();
    EXPECT_LE(static_cast<double>(residual),
              1e-13 * lengths[0] * lengths[0] * static_cast<double>(given.width))
        << "rank " << rank;
  }
}

TEST_P(ImageShapes, SemiAxesDescendAndFillTheTrace) {
  const NormSpec given = spec();
  const NormImage image(given);
  long double trace = 0.0L;
  for (std::size_t i = 0; i < image.semi_axes().size(); ++i) {
    EXPECT_LE(image.semi_axes()[i], image.semi_axes()[i == 0 ? 0 : i - 1]);
    EXPECT_GT(image.semi_axes()[i], 0.0);
    trace += static_cast<long double>(image.semi_axes()[i]) * image.semi_axes()[i];
  }
  const auto expected = static_cast<double>(image_matrix(given).trace());
  EXPECT_NEAR(static_cast<double>(trace), expected, 1e-13 * expected);
}

TEST_P(ImageShapes, NullSpaceIsErased) {
  const NormSpec given = spec();
  const NormImage image(given);
  std::size_t zeros = 0;
  for (const double g : given.gain) zeros += g == 0.0 ? 1 : 0;
  EXPECT_EQ(image.null_space_dim(), std::max<std::size_t>(1, zeros));
  std::vector<double> basis(image.null_space_dim() * given.width);
  image.null_space({basis.data(), image.null_space_dim(), given.width});
  const Matrix m = image_matrix(given);
  for (std::size_t row = 0; row < image.null_space_dim(); ++row) {
    const auto v = Eigen::Map<const Eigen::VectorXd>(basis.data() + row * given.width,
                                                     static_cast<Eigen::Index>(given.width))
                       .cast<long double>();
    EXPECT_LE(static_cast<double>((m * v).norm()), 1e-15 * static_cast<double>(m.norm()));
  }
}

TEST_P(ImageShapes, OneAxisAgreesWithAllAxes) {
  const NormSpec given = spec();
  const NormImage image(given);
  const std::vector<double> axes = all_axes(image, given.width);
  std::vector<double> one(given.width);
  for (const std::size_t rank : {std::size_t{0}, image.semi_axes().size() / 2}) {
    if (rank >= image.semi_axes().size()) continue;
    image.axis(rank, one);
    for (std::size_t i = 0; i < given.width; ++i) EXPECT_NEAR(one[i], axes[rank * given.width + i], 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ImageShapes,
                         testing::Combine(testing::Values("ordinary", "wide", "signed", "crowded", "repeated",
                                                          "zeros", "outlier"),
                                          testing::Values(2, 3, 17, 96)),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + std::to_string(std::get<1>(instance.param));
                         });

TEST(NormImage, SemiAxesMatchADenseEigensolver) {
  // Well separated: a factor of about 1.06 from each gain to the next, in shuffled order.
  for (const std::size_t width : {std::size_t{2}, std::size_t{5}, std::size_t{64}, std::size_t{150}}) {
    NormSpec spec{.width = width};
    for (std::size_t i = 0; i < width; ++i) {
      spec.gain.push_back((i % 3 == 0 ? -1.0 : 1.0) * std::exp(0.06 * static_cast<double>(i * 37 % width)));
    }
    const NormImage image(spec);
    const std::vector<double> expected = dense_semi_axes(spec);
    ASSERT_EQ(image.semi_axes().size(), width - 1);
    for (std::size_t i = 0; i < width - 1; ++i) {
      EXPECT_NEAR(image.semi_axes()[i] / expected[i], 1.0, 1e-12) << width << " rank " << i;
    }
  }
}

TEST(NormImage, AxesStayOrthogonalWhenRootsCrowdAPole) {
  // Hundreds of gains within a few roundings of one another, beside a few far ones.
  Random random(5);
  NormSpec spec{.width = 256};
  for (std::size_t i = 0; i < spec.width; ++i) {
    double g = 1.0;
    for (std::uint64_t steps = random.below(200); steps > 0; --steps) g = std::nextafter(g, 2.0);
    spec.gain.push_back(i % 40 == 0 ? 3.0 + 0.1 * static_cast<double>(i) : g);
  }
  EXPECT_LE(worst_orthogonality(NormImage(spec), spec.width), 1e-12);
}

TEST(NormImage, GroupsAreAProductOfTheirBlocks) {
  const std::vector<double> gain = test::random_gain(60, "ordinary", 3);
  const NormImage whole({.width = 60, .groups = 5, .gain = gain});
  EXPECT_EQ(whole.null_space_dim(), 5U);
  EXPECT_LE(worst_orthogonality(whole, 60), 1e-12);
  std::vector<double> parts;
  for (std::size_t begin = 0; begin < 60; begin += 12) {
    const NormImage part({.width = 12, .gain = {gain.begin() + begin, gain.begin() + begin + 12}});
    parts.insert(parts.end(), part.semi_axes().begin(), part.semi_axes().end());
  }
  std::sort(parts.rbegin(), parts.rend());
  EXPECT_EQ(parts, std::vector<double>(whole.semi_axes().begin(), whole.semi_axes().end()));
}

TEST(NormImage, RmsAxesAreTheCoordinates) {
  const NormImage image({.kind = NormKind::rms, .width = 4, .gain = {1.0, -3.0, 0.0, 2.0}});
  ASSERT_EQ(image.semi_axes().size(), 3U);
  EXPECT_EQ(image.null_space_dim(), 1U);
  EXPECT_DOUBLE_EQ(image.semi_axes()[0], 6.0);
  EXPECT_DOUBLE_EQ(image.semi_axes()[2], 2.0);
  EXPECT_DOUBLE_EQ(image.condition(), 3.0);
  std::vector<double> axis(4);
  image.axis(0, axis);
  EXPECT_EQ(axis, (std::vector<double>{0, 1, 0, 0}));
}

TEST(NormImage, MedianOfAnEvenNumberIsBetweenTheMiddleTwo) {
  EXPECT_DOUBLE_EQ(NormImage({.kind = NormKind::rms, .width = 4, .gain = {1, 2, 4, 8}}).median(), 6.0);
  EXPECT_DOUBLE_EQ(NormImage({.kind = NormKind::spherical, .width = 3, .gain = {5, 2, 4}}).median(), 4.0);
}

TEST(NormImage, EqualGainsMakeASphere) {
  const NormImage image({.width = 50, .gain = std::vector<double>(50, -2.0)});
  ASSERT_EQ(image.semi_axes().size(), 49U);
  for (const double length : image.semi_axes()) EXPECT_DOUBLE_EQ(length, 2.0 * std::sqrt(50.0));
  EXPECT_EQ(image.condition(), 1.0);
}

TEST(NormImage, WidthTwoIsASegment) {
  // G Π G for gains a, b has the one nonzero eigenvalue (a² + b²)/2.
  const NormImage image({.width = 2, .gain = {3.0, 4.0}});
  ASSERT_EQ(image.semi_axes().size(), 1U);
  EXPECT_NEAR(image.semi_axes()[0], std::sqrt(2.0 * 12.5), 1e-15 * 5.0);
}

TEST(NormImage, WidthOneIsAPoint) {
  const NormImage image({.width = 1, .gain = {3.0}});
  EXPECT_EQ(image.semi_axes().size(), 0U);
  EXPECT_EQ(image.null_space_dim(), 1U);
  EXPECT_EQ(image.condition(), 1.0);
}

TEST(NormImage, AllZeroGainsAreAPoint) {
  const NormImage image({.width = 3, .gain = {0, 0, 0}});
  EXPECT_EQ(image.semi_axes().size(), 0U);
  EXPECT_EQ(image.null_space_dim(), 3U);
}

TEST(NormImage, FullRangeOfFloat32GainsIsKept) {
  const NormImage image({.width = 4, .gain = {3e38, 1e-45, 1.0, 2.0}});
  ASSERT_EQ(image.semi_axes().size(), 3U);
  // Two gains far below the others form an axis of their own pair: √N times the root mean square.
  EXPECT_NEAR(image.semi_axes()[0] / (2.0 * 3e38 * std::sqrt(0.75)), 1.0, 1e-14);
  EXPECT_GT(image.semi_axes()[2], 0.0);
}

TEST(NormImage, ShapeDoesNotSeeSizes) {
  const std::vector<double> gain = test::random_gain(24, "signed", 6);
  const auto scaled = [&](int exponent) {
    NormSpec spec{.width = 24, .groups = 2, .gain = gain};
    for (double& g : spec.gain) g = std::scalbn(g, exponent);
    return NormImage(spec);
  };
  const NormImage plain = scaled(0);
  for (const int exponent : {-1050, -1022, -600, 600, 1000}) {
    const NormImage image = scaled(exponent);
    EXPECT_NEAR(image.semi_axes()[0], std::scalbn(plain.semi_axes()[0], exponent), 0x1p-1074);
    // Gains that are not normal numbers are themselves rounded.
    const double rounding = exponent > -1020 ? 0.0 : 1e-6;
    EXPECT_NEAR(image.condition() / plain.condition(), 1.0, rounding) << exponent;
    EXPECT_TRUE(std::isfinite(image.median()));
  }
  EXPECT_EQ(NormImage({.kind = NormKind::rms, .width = 2, .gain = {0x1p-1074, 0x1p-1072}}).condition(), 4.0);
  EXPECT_EQ(
      NormImage({.kind = NormKind::rms, .width = 2, .groups = 2, .gain = {0x1p-900, 0x1p900}}).condition(),
      std::numeric_limits<double>::infinity());
}

TEST(NormImage, SemiAxesBeyondTheRangeAreRefused) {
  EXPECT_THROW(NormImage({.kind = NormKind::rms, .width = 4, .gain = {1e308, 1, 1, 1}}), Error);
  EXPECT_EQ(NormImage({.kind = NormKind::spherical, .width = 1, .gain = {1e308}}).median(), 1e308);
  EXPECT_TRUE(std::isfinite(
      NormImage({.kind = NormKind::spherical, .width = 2, .gain = {1.7e308, 1.7e308}}).median()));
}

TEST(NormImage, ThreadsDoNotChangeABit) {
  const NormSpec spec{.width = 2000, .gain = test::random_gain(2000, "ordinary", 9)};
  const NormImage one(spec, 1);
  const NormImage four(spec, 4);
  EXPECT_TRUE(std::equal(one.semi_axes().begin(), one.semi_axes().end(), four.semi_axes().begin()));
}

TEST(NormImage, CanBeCancelled) {
  const NormSpec spec{.width = 2000, .gain = test::random_gain(2000, "ordinary", 9)};
  std::size_t asked = 0;
  const Progress stop([&](std::string_view, std::size_t, std::size_t) { return ++asked < 3; });
  EXPECT_THROW(NormImage(spec, 2, stop), Error);
}

TEST(NormImage, LongestAxesOfOneShapeAgree) {
  const NormImage a({.width = 20, .gain = test::random_gain(20, "ordinary", 1)});
  EXPECT_NEAR(longest_axes_cosine(a, a), 1.0, 1e-14);
  EXPECT_EQ(longest_axes_cosine(NormImage({.width = 1}), NormImage({.width = 1})), 0.0);
  EXPECT_THROW(static_cast<void>(longest_axes_cosine(a, NormImage({.width = 2}))), Error);
}

TEST(NormImage, GainThatIsNotFiniteIsRefused) {
  EXPECT_THROW(NormImage({.width = 2, .gain = {1.0, NAN}}), Error);
}

TEST(NormImage, OfAnElementwiseNormIsABox) {
  const NormImage image({.kind = NormKind::dyt, .width = 4, .gain = {3, 0, -5, 4}});
  EXPECT_EQ(std::vector<double>(image.semi_axes().begin(), image.semi_axes().end()),
            (std::vector<double>{5, 4, 3}));
  EXPECT_EQ(image.null_space_dim(), 1U);
  std::vector<double> axis(4);
  image.axis(0, axis);
  EXPECT_EQ(axis, (std::vector<double>{0, 0, 1, 0}));
}

}  // namespace
}  // namespace normscope::norm
