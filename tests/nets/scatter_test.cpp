#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <Eigen/Core>

#include <normscope/core/eigen/linear_algebra.hpp>
#include <normscope/core/error.hpp>
#include <normscope/core/exact.hpp>
#include <normscope/core/linear_algebra.hpp>
#include <normscope/core/random.hpp>
#include <normscope/nets/scatter.hpp>
#include <normscope/norm/norm.hpp>

namespace normscope::nets {
namespace {

using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

MatrixView<const double> view(const Rows& x) {
  return {x.data(), static_cast<std::size_t>(x.rows()), static_cast<std::size_t>(x.cols())};
}

struct Data {
  Rows x{};
  std::vector<std::size_t> labels{};

  [[nodiscard]] double ratio() const { return sum_of_squares_ratio(view(x), labels); }
  [[nodiscard]] LinearRatio linear() const { return linear_ratio(view(x), labels); }
  [[nodiscard]] double ratio_along(const std::vector<double>& direction) const {
    const Rows projected = x * Eigen::Map<const Eigen::VectorXd>(direction.data(), x.cols());
    return sum_of_squares_ratio(view(projected), labels);
  }
};

/// Rows about class means of size `spread`, correlated features.
Data random_data(std::size_t rows, std::size_t width, std::size_t classes, std::uint64_t seed,
                 double spread = 1.0) {
  Random random(seed);
  const auto normal = [&] { return random.normal(); };
  const Rows means = spread * Rows::NullaryExpr(static_cast<Eigen::Index>(classes),
                                                static_cast<Eigen::Index>(width), normal);
  const Rows mixing = Rows::NullaryExpr(means.cols(), means.cols(), normal);
  Data data{.x = Rows::NullaryExpr(static_cast<Eigen::Index>(rows), means.cols(), normal)};
  for (std::size_t row = 0; row < rows; ++row) {
    data.labels.push_back(row < classes ? row : random.below(classes));
    data.x.row(static_cast<Eigen::Index>(row)) += means.row(static_cast<Eigen::Index>(data.labels.back()));
  }
  data.x = data.x * mixing;
  return data;
}

struct Scatters {
  Eigen::MatrixXd within{};
  Eigen::MatrixXd total{};

  /// Smallest eigenvalue of S_W v = λ S_T v, for a regular S_T.
  [[nodiscard]] double smallest_ratio() const {
    const Eigen::MatrixXd factor = cholesky_factor(total);
    const auto lower = factor.triangularView<Eigen::Lower>();
    const Eigen::MatrixXd half = lower.solve(within);
    return symmetric_eigenvalues(lower.solve(half.transpose()))[0];
  }
};

/// S_W and S_T by their definitions.
Scatters scatters(const Data& data, std::size_t classes) {
  const Rows centred = data.x.rowwise() - data.x.colwise().mean();
  Scatters result{.within = Eigen::MatrixXd::Zero(data.x.cols(), data.x.cols()),
                  .total = centred.transpose() * centred};
  for (std::size_t c = 0; c < classes; ++c) {
    Eigen::RowVectorXd mean = Eigen::RowVectorXd::Zero(data.x.cols());
    double count = 0.0;
    for (std::size_t row = 0; row < data.labels.size(); ++row) {
      if (data.labels[row] != c) continue;
      mean += centred.row(static_cast<Eigen::Index>(row));
      count += 1.0;
    }
    result.within -= mean.transpose() * mean / count;
  }
  result.within += result.total;
  return result;
}

TEST(Scatter, RatiosAreTheirDefinitions) {
  const Data data = random_data(50, 5, 3, 1);
  const Scatters s = scatters(data, 3);
  EXPECT_NEAR(sum_of_squares(view(data.x)), s.total.trace(), 1e-12 * s.total.trace());
  EXPECT_NEAR(data.ratio(), s.within.trace() / s.total.trace(), 1e-14);
}

TEST(Scatter, LinearRatioIsTheSmallestEigenvalue) {
  for (const std::size_t classes : {2, 3, 7, 20}) {
    for (const double spread : {0.1, 1.0, 30.0}) {
      const Data data = random_data(60, 8, classes, classes, spread);
      const Scatters s = scatters(data, classes);
      const LinearRatio result = data.linear();
      EXPECT_EQ(result.rank, 8);
      EXPECT_NEAR(result.ratio, s.smallest_ratio(), 1e-12);
      EXPECT_NEAR(data.ratio_along(result.direction), result.ratio, 1e-12);
    }
  }
}

TEST(Scatter, TwoClassesHaveAClosedForm) {
  const Data data = random_data(50, 5, 2, 3, 0.5);
  const Scatters s = scatters(data, 2);
  Eigen::VectorXd difference = Eigen::VectorXd::Zero(5);
  double counts[2] = {};
  for (const std::size_t label : data.labels) counts[label] += 1.0;
  for (std::size_t row = 0; row < 50; ++row) {
    const double sign = data.labels[row] == 0 ? 1.0 : -1.0;
    difference += sign / counts[data.labels[row]] * data.x.row(static_cast<Eigen::Index>(row)).transpose();
  }
  const Eigen::VectorXd w = solve_positive(s.total, difference);
  const LinearRatio result = data.linear();
  EXPECT_NEAR(result.ratio, 1.0 - counts[0] * counts[1] / 50.0 * difference.dot(w), 1e-12);
  const Eigen::Map<const Eigen::VectorXd> direction(result.direction.data(), 5);
  EXPECT_NEAR(std::abs(direction.dot(w.normalized())), 1.0, 1e-10);
}

RC_GTEST_PROP(Scatter, NoLinearMapIsBelowTheLinearRatio, (std::uint64_t seed)) {
  Random random(seed);
  const std::size_t classes = 2 + random.below(4);
  // Products of numbers with few bits are exact. Rounded ones would not be linear images where maps of more
  // columns than features raise the rank.
  const auto with_bits = [](const Rows& x, int bits) {
    return Rows(
        x.unaryExpr([&](double value) { return std::scalbn(std::round(std::scalbn(value, bits)), -bits); }));
  };
  Data data = random_data(10 + random.below(30), 1 + random.below(8), classes, seed);
  data.x = with_bits(data.x, 20);
  const LinearRatio result = data.linear();
  RC_ASSERT(result.ratio <= data.ratio() + 1e-12);
  for (int trial = 0; trial < 20; ++trial) {
    const Rows map = Rows::NullaryExpr(data.x.cols(), static_cast<Eigen::Index>(1 + random.below(10)),
                                       [&] { return random.normal(); });
    const Data image{.x = data.x * with_bits(map, 20), .labels = data.labels};
    RC_ASSERT(image.ratio() >= result.ratio - 1e-12);
    RC_ASSERT(image.linear().ratio >= result.ratio - 1e-9);
  }
}

TEST(Scatter, SingularScatterIsHandledByItsRange) {
  Data data = random_data(40, 4, 2, 5, 0.5);
  const LinearRatio plain = data.linear();
  // A constant feature, a repeated one, a sum of two, and scales that no Gram matrix survives.
  Rows wide(40, 8);
  wide << data.x, Rows::Constant(40, 1, 0.1), data.x.col(0), data.x.col(1) + data.x.col(2),
      1e-150 * data.x.col(3);
  const LinearRatio result = Data{.x = wide, .labels = data.labels}.linear();
  EXPECT_EQ(result.rank, 4);
  EXPECT_NEAR(result.ratio, plain.ratio, 1e-11);
  // More features than rows: every labelling collapses onto two points.
  const Data few = random_data(10, 30, 2, 6);
  EXPECT_EQ(few.linear().rank, 9);
  EXPECT_NEAR(few.linear().ratio, 0.0, 1e-20);
}

TEST(Scatter, ValuesOfAnySizeGiveTheSameDigits) {
  const Data data = random_data(30, 4, 3, 14, 0.7);
  const LinearRatio plain = data.linear();
  for (const int exponent : {-1000, -660, -300, 300, 510, 1015}) {
    Data scaled = data;
    for (double& value : scaled.x.reshaped()) value = std::scalbn(value, exponent);
    EXPECT_EQ(scaled.ratio(), data.ratio()) << exponent;
    EXPECT_EQ(scaled.linear().ratio, plain.ratio) << exponent;
    EXPECT_EQ(scaled.linear().direction, plain.direction) << exponent;
    EXPECT_EQ(scaled.linear().rank, plain.rank) << exponent;
  }
  // Each feature at an end of the range of its own.
  Data mixed = data;
  const int exponents[] = {-1000, 1015, 0, 400};
  for (Eigen::Index i = 0; i < 4; ++i) {
    for (double& value : mixed.x.col(i)) value = std::scalbn(value, exponents[i]);
  }
  EXPECT_EQ(mixed.linear().ratio, plain.ratio);
  // Data far from zero, or nearly constant there: the ratio depends only on what varies.
  Rows constant(30, 5);
  constant << data.x, Rows::Constant(30, 1, 1.7e308);
  EXPECT_EQ((Data{.x = constant, .labels = data.labels}.ratio()), data.ratio());
  EXPECT_EQ((Data{.x = constant, .labels = data.labels}.linear().ratio), plain.ratio);
  EXPECT_TRUE(std::isfinite((Data{.x = Rows::Random(30, 2) * 1.7e308, .labels = data.labels}.ratio())));
  EXPECT_EQ(sum_of_squares(view(Rows(std::scalbn(1.0, 500) * data.x))),
            std::scalbn(sum_of_squares(view(data.x)), 1000));
}

/// SSR of the rows along a direction, in extended precision.
double extended_ratio(const Data& data, const std::vector<double>& direction) {
  std::vector<long double> along;
  std::vector<long double> sums(10, 0.0L);
  std::vector<long double> counts(10, 0.0L);
  long double mean = 0.0L;
  for (Eigen::Index row = 0; row < data.x.rows(); ++row) {
    // Two products of 53 bits, and what the sum of their heads leaves: 128 bits and more.
    DoubleDouble total;
    for (Eigen::Index i = 0; i < data.x.cols(); ++i) {
      total += two_product(data.x(row, i), direction[static_cast<std::size_t>(i)]);
    }
    along.push_back(static_cast<long double>(total.high) + total.low);
    const std::size_t label = data.labels[static_cast<std::size_t>(row)];
    sums[label] += along.back();
    counts[label] += 1.0L;
    mean += along.back();
  }
  mean /= static_cast<long double>(along.size());
  long double within = 0.0L;
  long double total = 0.0L;
  for (std::size_t row = 0; row < along.size(); ++row) {
    const std::size_t label = data.labels[row];
    const long double deviation = along[row] - sums[label] / counts[label];
    within += deviation * deviation;
    total += (along[row] - mean) * (along[row] - mean);
  }
  return static_cast<double>(within / total);
}

TEST(Scatter, LinearRatioOfIllConditionedFeatures) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const std::size_t classes = 2 + random.below(3);
    Data data = random_data(40, 5, classes, seed, 0.6);
    for (double& value : data.x.reshaped()) value = std::round(8.0 * value);
    const double exact = data.linear().ratio;
    // Features that are each other's sums: a map without a rounding error that leaves the ratio as it is.
    const double factor = std::scalbn(1.0, static_cast<int>(random.below(22)));
    for (Eigen::Index i = 1; i < 5; ++i) data.x.col(i) += factor * data.x.col(i - 1);
    const LinearRatio result = data.linear();
    EXPECT_NEAR(result.ratio, extended_ratio(data, result.direction), 1e-13) << seed;
    Rows centred = data.x.rowwise() - data.x.colwise().mean();
    for (Eigen::Index i = 0; i < 5; ++i) centred.col(i).normalize();
    const std::vector<double> sizes = singular_value_decomposition(view(centred)).values;
    const double condition = sizes[0] / sizes[4];
    if (condition > 1e12) continue;
    ASSERT_EQ(result.rank, 5) << seed;
    const double off = 32.0 * 0x1p-53 * condition;
    EXPECT_NEAR(result.ratio, exact, 1e-12 + off * off) << seed << " condition " << condition;
  }
}

TEST(Scatter, ThousandsOfRowsOrClasses) {
  const Data rows = random_data(4000, 30, 10, 7, 0.2);
  const Scatters s = scatters(rows, 10);
  EXPECT_NEAR(rows.linear().ratio, s.smallest_ratio(), 1e-11);
  const Data classes = random_data(9000, 40, 3000, 8, 3.0);
  const Scatters of_classes = scatters(classes, 3000);
  const LinearRatio result = classes.linear();
  EXPECT_NEAR(result.ratio, of_classes.smallest_ratio(), 1e-11);
  EXPECT_NEAR(classes.ratio_along(result.direction), result.ratio, 1e-11);
}

TEST(Scatter, EveryRowAClassOfItsOwn) {
  Data data = random_data(700, 5, 2, 11);
  for (std::size_t row = 0; row < 700; ++row) data.labels[row] = row;
  EXPECT_EQ(data.linear().ratio, 0.0);
  EXPECT_EQ(data.linear().rank, 5);
}

TEST(Scatter, ThreadsDoNotChangeABit) {
  // Eleven blocks of rows, so that their triangles are merged unevenly, and several of class means.
  const Data data = random_data(2900, 20, 1100, 12);
  const LinearRatio one = linear_ratio(view(data.x), data.labels, 1);
  for (const unsigned threads : {2U, 3U, 8U}) {
    const LinearRatio many = linear_ratio(view(data.x), data.labels, threads);
    EXPECT_EQ(many.ratio, one.ratio);
    EXPECT_EQ(many.direction, one.direction);
    EXPECT_EQ(sum_of_squares_ratio(view(data.x), data.labels, threads),
              sum_of_squares_ratio(view(data.x), data.labels, 1));
  }
}

TEST(Scatter, WorkCanBeCancelled) {
  const Data data = random_data(1000, 8, 2, 13);
  const Progress stop([](std::string_view, std::size_t, std::size_t) { return false; });
  try {
    static_cast<void>(linear_ratio(view(data.x), data.labels, 2, stop));
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::Cancelled);
  }
}

TEST(Scatter, OneLayerNormBreaksExclusiveOr) {
  Data data{.x = Rows(4, 2), .labels = {0, 0, 1, 1}};
  data.x << 0, 0, 1, 1, 0, 1, 1, 0;
  EXPECT_EQ(data.ratio(), 1.0);
  EXPECT_NEAR(data.linear().ratio, 1.0, 1e-15);
  // W = U [1 1; 0 0], b = U (−1, 1) with U = [(1,−1,0)/√2, (1,1,−2)/√6] spanning 1^⊥.
  const double p = 1.0 / std::sqrt(2.0);
  const double q = 1.0 / std::sqrt(6.0);
  Rows hidden(4, 3);
  for (Eigen::Index row = 0; row < 4; ++row) {
    const double first = data.x(row, 0) + data.x(row, 1) - 1.0;
    hidden.row(row) << first * p + q, -first * p + q, -2.0 * q;
  }
  norm::forward({.width = 3, .eps = 0.0}, view(hidden), {hidden.data(), 4, 3});
  EXPECT_NEAR(hidden(0, 1), 1.366025403784439, 1e-14);
  EXPECT_NEAR(hidden(2, 2), -1.414213562373095, 1e-14);
  const Data image{.x = hidden, .labels = data.labels};
  EXPECT_NEAR(image.linear().ratio, 0.0, 1e-25);
  EXPECT_NEAR(image.ratio(), 0.921, 1e-3);
  EXPECT_NEAR(image.ratio_along({q, q, -2.0 * q}), 0.0, 1e-25);
}

TEST(Scatter, DegenerateAnswers) {
  const Data same{.x = Rows::Constant(4, 2, 0.1), .labels = {0, 0, 1, 1}};
  EXPECT_TRUE(std::isnan(same.ratio()));
  EXPECT_TRUE(std::isnan(same.linear().ratio));
  EXPECT_EQ(same.linear().rank, 0);
  Data two{.x = Rows(2, 1), .labels = {9, 4}};
  two.x << 1.0, 2.0;
  EXPECT_EQ(two.ratio(), 0.0);
  EXPECT_EQ(two.linear().ratio, 0.0);
}

TEST(Scatter, BadInputIsNamed) {
  Data data = random_data(6, 2, 2, 9);
  EXPECT_THROW(static_cast<void>(sum_of_squares_ratio(view(data.x), std::vector<std::size_t>(5))), Error);
  EXPECT_THROW(static_cast<void>(linear_ratio(view(data.x), std::vector<std::size_t>(6, 3))), Error);
  data.x(4, 1) = std::nan("");
  EXPECT_THROW(static_cast<void>(data.linear()), Error);
}

}  // namespace
}  // namespace normscope::nets
