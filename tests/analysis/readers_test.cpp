#include <cmath>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include <normscope/analysis/report.hpp>

#include "support/fixtures.hpp"

namespace normscope::analysis {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

TEST(Readers, SharesAreThoseOfTheProjectedWeights) {
  for (const char* name : {"gpt2", "llama"}) {
    const files::Checkpoint checkpoint(test::fixture(name));
    const Report report = audit(checkpoint);
    std::size_t seen = 0;
    for (const NormReport& norm : report.norms) {
      ASSERT_EQ(norm.readers.size(), norm.norm.readers.size()) << name << " " << norm.norm.name;
      const NormSpec spec = models::read_norm(checkpoint, norm.norm);
      for (const Reader& reader : norm.readers) {
        const models::Linear& linear = norm.norm.readers[reader.index];
        const std::vector<double> values = models::read_weight(checkpoint, linear, 0, linear.out);
        Matrix weights = Eigen::Map<const Matrix>(values.data(), static_cast<Eigen::Index>(linear.out),
                                                  static_cast<Eigen::Index>(linear.in));
        for (std::size_t j = 0; j < spec.width; ++j)
          weights.col(static_cast<Eigen::Index>(j)) *= spec.gain_at(j);
        const Matrix kept = spec.centers() ? Matrix(weights.colwise() - weights.rowwise().mean()) : weights;
        EXPECT_NEAR(reader.removed, 1.0 - kept.squaredNorm() / weights.squaredNorm(), 1e-12);
        EXPECT_EQ(reader.chance, spec.centers() ? 1.0 / static_cast<double>(spec.width) : 0.0);
        Eigen::Index largest = 0;
        const double square = weights.colwise().squaredNorm().maxCoeff(&largest);
        EXPECT_EQ(reader.features[0].coordinate, static_cast<std::size_t>(largest));
        EXPECT_NEAR(reader.features[0].weight, square / weights.squaredNorm(), 1e-12);
        EXPECT_LE(reader.along_longest, linear.out);
        ++seen;
      }
    }
    EXPECT_GT(seen, 4U) << name;
  }
}

TEST(Readers, OnlyThoseWithinTheBudgetAreRead) {
  for (const char* name : {"gpt2", "llama"}) {
    const files::Checkpoint checkpoint(test::fixture(name));
    const models::Model model = models::describe(checkpoint);
    for (const double budget : {0.0, 3e3, 1e4}) {
      const Report report = audit(checkpoint, model, 1, {}, {.budget = budget});
      const std::vector<std::vector<bool>> within = readers_within(model, budget);
      double work = 0.0;
      std::size_t known = 0;
      std::size_t all = 0;
      for (std::size_t i = 0; i < report.norms.size(); ++i) {
        const NormReport& norm = report.norms[i];
        for (const Reader& reader : norm.readers) {
          EXPECT_TRUE(within[i][reader.index]) << name << " " << norm.norm.name;
          const models::Linear& linear = norm.norm.readers[reader.index];
          work += 4.0 * static_cast<double>(linear.out) * static_cast<double>(linear.in);
        }
        known += norm.readers.size();
        all += norm.norm.readers.size();
      }
      EXPECT_LE(work, budget) << name;
      EXPECT_EQ(known + left_out(report).readers, all) << name << " " << budget;
    }
  }
}

}  // namespace
}  // namespace normscope::analysis
