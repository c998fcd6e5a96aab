#include "plateaus.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>

namespace normscope::lab::ln_nets {
namespace {

constexpr std::size_t every = 30;
constexpr std::size_t records = 334;

/// A curve over 10,000 steps with 10 % noise.
template <class Loss>
std::vector<double> curve(Loss loss) {
  Random random(1);
  std::vector<double> values;
  for (std::size_t i = 0; i < records; ++i)
    values.push_back(loss(static_cast<double>(i * every)) * std::exp(0.1 * random.normal()));
  return values;
}

TEST(Plateaus, SteadyDecreaseHasNone) {
  EXPECT_TRUE(plateaus(curve([](double) { return 1.0; }), every).empty());
  EXPECT_TRUE(plateaus(curve([](double t) { return std::exp(-t / 2000.0); }), every).empty());
  EXPECT_TRUE(plateaus(curve([](double t) { return 1.0 - t / 10100.0; }), every).empty());
  EXPECT_TRUE(plateaus(curve([](double t) { return 1.0 / (1.0 + t / 300.0); }), every).empty());
  EXPECT_TRUE(plateaus({}, every).empty());
}

TEST(Plateaus, EveryStepOfAStaircaseButTheLastIsOne) {
  const auto found =
      plateaus(curve([](double t) { return t < 3000.0   ? 1.0
                                           : t < 6000.0 ? 0.6
                                                        : 0.3; }), every);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NEAR(static_cast<double>(found[0].last), 3000.0, 150.0);
  EXPECT_NEAR(found[0].loss, 1.0, 0.1);
  EXPECT_NEAR(found[1].loss, 0.6, 0.06);
  EXPECT_NEAR(static_cast<double>(found[1].last), 6000.0, 150.0);
}

TEST(Plateaus, SpikesAndSmallStepsDoNotCount) {
  std::vector<double> loss = curve([](double t) { return t < 5000.0 ? 1.0 : 0.8; });
  EXPECT_TRUE(plateaus(loss, every).empty());
  for (std::size_t i = 50; i < records; i += 40) loss[i] = i % 80 == 50 ? 10.0 : 0.1;
  EXPECT_TRUE(plateaus(loss, every).empty());
}

}  // namespace
}  // namespace normscope::lab::ln_nets
