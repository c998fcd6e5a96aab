#include "../../src/signature/quadric.hpp"

#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>

#include "support/thread_team.hpp"

namespace normscope::signature {
namespace {

// Two blocks of columns, and slices of unequal length.
constexpr std::size_t width = 140;
constexpr std::size_t rows = 150;

std::vector<double> normal(std::size_t count, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> result(count);
  for (double& value : result) value = random.normal();
  return result;
}

/// Random points, weights of the rows, and the map on one thread.
struct OneThread {
  std::vector<double> points = normal(rows * width, 1);
  std::vector<double> weights = normal(rows, 2);
  RowSlices slices{rows, alone()};
  Design design{{points.data(), rows, width}, slices, 1};
};

TEST(Design, TheTransposeIsTheSumOverRows) {
  const OneThread of;
  Quadric found(width);
  of.design.transposed(of.weights, Design::Arithmetic::float64, found);
  double trace = 0.0;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < width; ++i)
      trace += of.weights[row] * of.points[row * width + i] * of.points[row * width + i];
  }
  double constant = 0.0;
  for (const double weight : of.weights) constant += weight;
  EXPECT_NEAR(found.constant, constant, 1e-11);
  for (std::size_t i = 0; i < width; i += 7) {
    double linear = 0.0;
    for (std::size_t row = 0; row < rows; ++row) linear += of.weights[row] * of.points[row * width + i];
    EXPECT_NEAR(found.linear[i], linear, 1e-11);
    for (std::size_t j = 0; j < width; j += 11) {
      double sum = i == j ? -trace / static_cast<double>(width) : 0.0;
      for (std::size_t row = 0; row < rows; ++row)
        sum += of.weights[row] * of.points[row * width + i] * of.points[row * width + j];
      EXPECT_NEAR(found.matrix[i * width + j], sum, 1e-11) << i << ", " << j;
    }
  }
}

TEST(Design, ValuesAndTransposeAreAdjoint) {
  const OneThread of;
  Quadric quadric(width);
  quadric.linear = normal(width, 3);
  quadric.constant = 0.5;
  const std::vector<double> entries = normal(width * width, 4);
  double trace = 0.0;
  for (std::size_t i = 0; i < width; ++i) {
    for (std::size_t j = 0; j < width; ++j)
      quadric.matrix[i * width + j] = entries[i * width + j] + entries[j * width + i];
    trace += quadric.matrix[i * width + i];
  }
  for (std::size_t i = 0; i < width; ++i) quadric.matrix[i * width + i] -= trace / static_cast<double>(width);
  std::vector<double> values;
  of.design.values(quadric, Design::Arithmetic::float64, values);
  Quadric transposed(width);
  of.design.transposed(of.weights, Design::Arithmetic::float64, transposed);
  double left = 0.0;
  for (std::size_t row = 0; row < rows; ++row) left += of.weights[row] * values[row];
  EXPECT_NEAR(transposed.dot(quadric) / left, 1.0, 1e-10);
}

TEST(Design, TheSameBitsForAnyNumberOfThreadsAndProcesses) {
  const OneThread of;
  Quadric one(width);
  std::vector<double> of_one;
  of.design.transposed(of.weights, Design::Arithmetic::float32, one);
  of.design.values(one, Design::Arithmetic::float32, of_one);
  for (const std::size_t members : {std::size_t{1}, std::size_t{3}, RowSlices::count}) {
    ThreadTeam::run(members, [&](const Team& team) {
      const RowSlices slices(rows, team);
      // The columns of a member with few slices are divided among threads.
      const Design design({of.points.data() + slices.begin() * width, slices.end() - slices.begin(), width},
                          slices, members == 1 ? 100 : 2);
      Quadric found(width);
      std::vector<double> values;
      design.transposed(of.weights, Design::Arithmetic::float32, found);
      design.values(found, Design::Arithmetic::float32, values);
      EXPECT_EQ(found.matrix, one.matrix);
      EXPECT_EQ(found.linear, one.linear);
      EXPECT_EQ(found.constant, one.constant);
      EXPECT_EQ(values, of_one);
    });
  }
}

}  // namespace
}  // namespace normscope::signature
