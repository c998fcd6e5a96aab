// The claims of Brody, Alon and Yahav 2023 that are about keys alone, one test per claim.

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <Eigen/Dense>

#include <normscope/core/rounding.hpp>
#include <normscope/selectability/select.hpp>

#include "selectability/test_keys.hpp"

namespace normscope::selectability {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

VectorXd normal_vector(Index size, Random& random) {
  VectorXd result(size);
  for (double& value : result) value = random.normal();
  return result;
}

VectorXd layer_norm(const VectorXd& x) {
  const Keys row = normalized({.values = {x.begin(), x.end()}, .width = static_cast<std::size_t>(x.size())});
  return Eigen::Map<const VectorXd>(row.values.data(), x.size());
}

MatrixXd matrix(const Keys& keys) {
  const auto rows = static_cast<Index>(keys.rows());
  const auto width = static_cast<Index>(keys.width);
  return Eigen::Map<const Eigen::Matrix<double, -1, -1, Eigen::RowMajor>>(keys.values.data(), rows, width);
}

Keys rows_of(const MatrixXd& matrix) {
  Keys result{.values = {}, .width = static_cast<std::size_t>(matrix.cols())};
  for (Index row = 0; row < matrix.rows(); ++row) {
    for (Index i = 0; i < matrix.cols(); ++i) result.values.push_back(matrix(row, i));
  }
  return result;
}

std::size_t lost(const Keys& set) {
  const Selection selection = select_keys(set.view());
  EXPECT_EQ(selection.count(Selectability::undecided), 0);
  return selection.count(Selectability::unselectable);
}

TEST(Brody, TheNormProjectsThenScales) {
  Random random(1);
  for (Index d = 3; d <= 64; ++d) {
    const VectorXd x = 3.0 * normal_vector(d, random);
    const VectorXd projected = x.array() - x.mean();
    const VectorXd y = layer_norm(x);
    const double radius = std::sqrt(static_cast<double>(d));
    EXPECT_LT((y - radius * projected / projected.norm()).norm(), 1e-12);
    EXPECT_LT(std::abs(y.sum()), 1e-12);
    EXPECT_NEAR(y.norm(), radius, 1e-12);
  }
}

TEST(Brody, TheProjectionIsTheMatrixOfAppendixC) {
  for (Index d = 2; d <= 20; ++d) {
    // Columns 1 − d e_i, and 1 last; the projection keeps the former and erases the latter.
    MatrixXd basis = MatrixXd::Ones(d, d);
    for (Index i = 0; i + 1 < d; ++i) basis(i, i) -= static_cast<double>(d);
    VectorXd kept = VectorXd::Ones(d);
    kept[d - 1] = 0.0;
    const MatrixXd product = basis * kept.asDiagonal() * basis.inverse();
    const MatrixXd projection =
        MatrixXd::Identity(d, d) - MatrixXd::Constant(d, d, 1.0 / static_cast<double>(d));
    EXPECT_LT((product - projection).norm(), 1e-12);
    EXPECT_LT((projection * projection - projection).norm(), 1e-14);
  }
}

TEST(Brody, APlaneThroughOnesBecomesTwoPoints) {
  Random random(2);
  for (Index d = 3; d <= 12; ++d) {
    VectorXd v = normal_vector(d, random);
    v.array() -= v.mean();
    v.normalize();
    for (int trial = 0; trial < 20; ++trial) {
      const double alpha = random.normal();
      const VectorXd x = (alpha * v).array() + random.normal();
      const double side = std::copysign(std::sqrt(static_cast<double>(d)), alpha);
      EXPECT_LT((layer_norm(x) - side * v).norm(), 1e-10 / std::abs(alpha));
    }
  }
}

TEST(Brody, AKeyInsideLosesToSomeKeyForEveryQuery) {
  Random random(3);
  for (const std::size_t width : {2, 3, 8}) {
    Keys set = normal_keys(4 * width, width, width);
    set.add(mixture(set, set.rows(), 8 * width, random));
    const std::size_t last = set.rows() - 1;
    ASSERT_EQ(select_keys(set.view()).keys[last].answer, Selectability::unselectable);
    const MatrixXd all = matrix(set);
    for (int trial = 0; trial < 20000; ++trial) {
      const VectorXd scores = all * normal_vector(all.cols(), random);
      ASSERT_GT(scores.head(scores.size() - 1).maxCoeff(), scores[scores.size() - 1]);
    }
    // A query along all-ones ties all projected keys; the theorem is about other queries.
    const MatrixXd flat = all.colwise() - all.rowwise().mean();
    const VectorXd tie = flat * VectorXd::Ones(flat.cols());
    EXPECT_LT(tie.cwiseAbs().maxCoeff(), 1e-13);
    EXPECT_EQ(select_keys(rows_of(flat).view()).keys[last].answer, Selectability::unselectable);
  }
}

TEST(Brody, GainWithoutZerosAndBiasChangeNothing) {
  std::size_t with_three_zeros = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Keys set = normal_keys(200, 8, seed);
    std::vector<double> gain = normal_keys(1, 8, seed + 10).values;
    const std::vector<double> bias = normal_keys(1, 8, seed + 20).values;
    EXPECT_EQ(lost(normalized(set, 0.0, gain, bias)), 0);
    gain[0] = 0.0;
    EXPECT_EQ(lost(normalized(set, 0.0, gain, bias)), 0);
    gain[3] = gain[6] = 0.0;
    with_three_zeros += lost(normalized(set, 0.0, gain, bias));
  }
  EXPECT_GT(with_three_zeros, 3 * 20);
  EXPECT_LT(with_three_zeros, 3 * 120);
}

TEST(Brody, InputsSmallerThanEpsAreUnselectable) {
  const auto lost_at = [](double deviation) {
    return lost(normalized(normal_keys(1024, 8, 5, deviation), 1e-5));
  };
  EXPECT_EQ(lost_at(0.1), 0);
  const std::size_t some = lost_at(0.01);
  const std::size_t most = lost_at(0.001);
  EXPECT_LT(some, 60);
  EXPECT_GT(most, 450);
  RecordProperty("lost", std::to_string(some) + " " + std::to_string(most));
}

TEST(Brody, InverseGainAttendsToAllKeysEqually) {
  const std::vector<double> gain = normal_keys(1, 8, 7).values;
  const MatrixXd set = matrix(normalized(normal_keys(100, 8, 8), 0.0, gain, normal_keys(1, 8, 9).values));
  VectorXd query = VectorXd::Constant(8, 2.0);
  for (Index i = 0; i < 8; ++i) query[i] /= gain[static_cast<std::size_t>(i)];
  const VectorXd scores = set * query;
  const VectorXd weights = (scores.array() - scores.maxCoeff()).exp();
  EXPECT_LT((weights / weights.sum()).maxCoeff() * 100.0 - 1.0, 1e-12 * query.norm());
}

TEST(Brody, AHeadOfTwoDimensionsReachesFewKeys) {
  Random random(10);
  double vertices = 0.0;
  constexpr int heads = 20;
  for (int head = 0; head < heads; ++head) {
    const Keys set = normalized(normal_keys(1024, 8, 100 + static_cast<std::uint64_t>(head)));
    EXPECT_EQ(lost(set), 0);
    MatrixXd map(8, 2);
    for (Index i = 0; i < 8; ++i) map.row(i) = normal_vector(2, random);
    vertices += static_cast<double>(1024 - lost(rows_of(matrix(set) * map)));
  }
  EXPECT_NEAR(vertices / heads, 18.6, 3.0);
  RecordProperty("vertices", std::to_string(vertices / heads));
}

TEST(Brody, LargeNormalSetsMatchTheTable) {
  struct RandomSets {
    std::size_t count;
    std::size_t width;
    double share;
  };
  for (const RandomSets& it : {RandomSets{128, 7, 0.194}, RandomSets{128, 8, 0.102},
                               RandomSets{1024, 7, 0.609}, RandomSets{1024, 8, 0.477}}) {
    double share = 0.0;
    constexpr std::uint64_t draws = 5;
    for (std::uint64_t seed = 0; seed < draws; ++seed) {
      share += static_cast<double>(lost(normal_keys(it.count, it.width, 31 + seed)));
    }
    share /= static_cast<double>(draws * it.count);
    EXPECT_NEAR(share, it.share, 0.05) << it.count << " x " << it.width;
    RecordProperty("share_" + std::to_string(it.count) + "_" + std::to_string(it.width),
                   std::to_string(share));
  }
}

}  // namespace
}  // namespace normscope::selectability
