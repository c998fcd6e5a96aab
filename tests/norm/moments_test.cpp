#include <cmath>
#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/core/rounding.hpp>
#include <normscope/norm/image.hpp>
#include <normscope/norm/norm.hpp>

#include "support/gains.hpp"

namespace normscope::norm {
namespace {

Eigen::MatrixXd moment_matrix(const NormSpec& spec) {
  Eigen::MatrixXd result(spec.width, spec.width);
  const std::size_t block = spec.block_width();
  for (std::size_t i = 0; i < spec.width; ++i) {
    for (std::size_t j = 0; j < spec.width; ++j) {
      const double centring =
          spec.centers() && i / block == j / block ? 1.0 / static_cast<double>(block) : 0.0;
      result(i, j) = ((i == j ? 1.0 : 0.0) - centring) * spec.gain_at(i) * spec.gain_at(j);
    }
  }
  return spec.radius() * spec.radius() * result;
}

TEST(Moments, AgreeWithTheSemiAxes) {
  for (const char* shape : {"ordinary", "wide", "signed", "zeros", "repeated"}) {
    for (const std::size_t groups : {1, 4}) {
      const NormSpec spec{.width = 48, .groups = groups, .gain = test::random_gain(48, shape, 21)};
      double squares = 0.0;
      double fourths = 0.0;
      const NormImage image(spec);
      for (const double length : image.semi_axes()) {
        squares += length * length;
        fourths += std::pow(length, 4);
      }
      EXPECT_NEAR(energy(spec) / squares, 1.0, 1e-13) << shape;
      EXPECT_NEAR(effective_dimension(spec) / (squares * squares / fourths), 1.0, 1e-13) << shape;
    }
  }
}

TEST(Moments, SimilarityIsTheCosineOfTheMatrices) {
  const std::vector<NormSpec> specs{
      {.width = 24, .gain = test::random_gain(24, "signed", 1)},
      {.width = 24, .groups = 3, .gain = test::random_gain(24, "wide", 2)},
      {.width = 24, .groups = 4, .gain = test::random_gain(24, "ordinary", 3)},
      {.kind = NormKind::rms, .width = 24, .gain = test::random_gain(24, "zeros", 4)},
      {.width = 24}};
  for (const NormSpec& a : specs) {
    for (const NormSpec& b : specs) {
      const Eigen::MatrixXd ma = moment_matrix(a);
      const Eigen::MatrixXd mb = moment_matrix(b);
      EXPECT_NEAR(image_similarity(a, b), (ma * mb).trace() / (ma.norm() * mb.norm()), 1e-13);
    }
    EXPECT_NEAR(image_similarity(a, a), 1.0, 1e-15);
  }
}

TEST(Moments, EqualGainsUseEveryAxis) {
  EXPECT_NEAR(effective_dimension({.width = 100}), 99.0, 1e-10);
  EXPECT_NEAR(effective_dimension({.kind = NormKind::rms, .width = 100}), 100.0, 1e-10);
  EXPECT_EQ(effective_dimension({.width = 1}), 0.0);
  EXPECT_EQ(effective_dimension({.width = 3, .gain = {0, 0, 0}}), 0.0);
}

TEST(Moments, RadiusIsTheRootMeanSquareOfOutputs) {
  // Normalized rows spread evenly over their sphere: each of a block's directions in turn, both ends.
  Random random(4);
  for (const NormKind kind : {NormKind::layer, NormKind::rms, NormKind::spherical}) {
    for (const std::size_t groups : {1, 3}) {
      const NormSpec spec{.kind = kind,
                          .width = 12,
                          .groups = groups,
                          .eps = 0.0,
                          .gain = test::random_gain(12, "signed", 5)};
      double squares = 0.0;
      constexpr int rows = 40'000;
      std::vector<double> x(12);
      for (int row = 0; row < rows; ++row) {
        for (double& value : x) value = random.normal();
        norm::forward(spec, {x.data(), 1, 12}, {x.data(), 1, 12});
        squares += sum_of_squares(x) / rows;
      }
      EXPECT_NEAR(rms_radius(spec) / std::sqrt(squares), 1.0, 0.01);
      const double dimension = static_cast<double>(spec.block_width() - (spec.centers() ? 1 : 0));
      EXPECT_NEAR(rms_radius(spec) / std::sqrt(energy(spec) / dimension), 1.0, 1e-14);
    }
  }
}

TEST(Moments, ShiftIsTheBiasOverTheRadius) {
  EXPECT_EQ(shift_over_radius({.width = 4, .gain = {1, 1, 1, 1}, .bias = {2, 0, 0, 0}}), 1.0);
  EXPECT_EQ(shift_over_radius({.width = 768, .bias = std::vector<double>(768, 1.0)}), 1.0);
  EXPECT_EQ(shift_over_radius({.width = 4, .gain = {2, 2, 2, 2}}), 0.0);
  EXPECT_EQ(shift_over_radius({.kind = NormKind::spherical, .width = 4, .bias = {0, 3, 0, 0}}), 3.0);
  EXPECT_NEAR(*shift_over_radius({.width = 4, .groups = 2, .bias = {0, 0, 0, 1}}), 0.5, 1e-15);
  EXPECT_EQ(shift_over_radius({.width = 2, .gain = {0, 0}, .bias = {1, 1}}), std::nullopt);
  EXPECT_EQ(shift_over_radius({.width = 2, .groups = 2, .bias = {1, 1}}), std::nullopt);
}

TEST(Moments, AreScaleInvariant) {
  NormSpec spec{
      .width = 24, .gain = test::random_gain(24, "signed", 2), .bias = test::random_gain(24, "wide", 3)};
  const double size = *shift_over_radius(spec);
  const double dimension = effective_dimension(spec);
  for (const int exponent : {-1000, -300, 300, 1000}) {
    NormSpec scaled = spec;
    for (double& g : scaled.gain) g = std::scalbn(g, exponent);
    EXPECT_EQ(rms_radius(scaled), std::scalbn(rms_radius(spec), exponent));
    EXPECT_EQ(effective_dimension(scaled), dimension);
    EXPECT_EQ(image_similarity(scaled, spec), image_similarity(spec, spec));
    for (double& b : scaled.bias) b = std::scalbn(b, exponent);
    EXPECT_EQ(shift_over_radius(scaled), size);
  }
  // At most half of the exponent range, because energies are squares.
  for (double& g : spec.gain) g = std::scalbn(g, 500);
  EXPECT_TRUE(std::isfinite(energy(spec)));
}

TEST(Moments, PointsResembleNothing) {
  for (const double g : {0.3, 1.7, 4.1}) {
    EXPECT_EQ(image_similarity({.width = 1, .gain = {g}}, {.width = 1, .gain = {g}}), 0.0);
    EXPECT_EQ(image_similarity({.width = 2, .groups = 2, .gain = {g, 2 * g}}, {.width = 2}), 0.0);
  }
}

TEST(Moments, HugeGainsDoNotOverflow) {
  EXPECT_NEAR(effective_dimension({.width = 3, .gain = {1e200, 1e200, 1e200}}), 2.0, 1e-12);
  EXPECT_NEAR(image_similarity({.width = 2, .gain = {1e200, 1e200}}, {.width = 2, .gain = {1e-200, 1e-200}}),
              1.0, 1e-14);
}

TEST(Moments, DifferentWidthsAreRefused) {
  EXPECT_THROW(static_cast<void>(image_similarity({.width = 2}, {.width = 3})), Error);
}

}  // namespace
}  // namespace normscope::norm
