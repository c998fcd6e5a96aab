#include <cmath>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/selectability/select.hpp>

namespace normscope::selectability {
namespace {

TEST(Weights, AreTheSoftmax) {
  const std::vector<double> keys{0, 0, 1, 0, 0, 2};
  const std::vector<double> few = attention_weights({keys.data(), 3, 2}, std::vector{std::log(2.0), 0.0});
  EXPECT_NEAR(few[0], 0.25, 1e-15);
  EXPECT_NEAR(few[1], 0.5, 1e-15);
  EXPECT_NEAR(few[2], 0.25, 1e-15);
  const std::vector<double> sharp = attention_weights({keys.data(), 3, 2}, std::vector{0.0, 1e300});
  EXPECT_EQ(sharp, (std::vector{0.0, 0.0, 1.0}));
}

RC_GTEST_PROP(Weights, OfAKeyInsideTheHullAreNeverLargest, ()) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto rows = *rc::gen::inRange<std::size_t>(1, 20);
  Random random(seed);
  std::vector<double> keys(2 * rows);
  for (double& value : keys) value = random.normal();
  const std::vector<double> query{3 * random.normal(), 3 * random.normal()};
  const std::vector<double> weights = attention_weights({keys.data(), rows, 2}, query);
  RC_ASSERT(std::abs(std::accumulate(weights.begin(), weights.end(), -1.0)) <= 1e-14);
  const Selection selection = selectability::keys({keys.data(), rows, 2});
  const auto best =
      static_cast<std::size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
  RC_ASSERT(selection.keys[best].answer == Selectability::selectable);
}

TEST(Weights, BadInputIsNamed) {
  const std::vector<double> keys{0, 0, 1, 0};
  EXPECT_THROW((void)attention_weights({keys.data(), 2, 2}, std::vector{1.0}), Error);
  EXPECT_THROW((void)attention_weights({keys.data(), 0, 2}, std::vector{1.0, 1.0}), Error);
  EXPECT_THROW((void)attention_weights({keys.data(), 2, 2}, std::vector{INFINITY, 1.0}), Error);
}

}  // namespace
}  // namespace normscope::selectability
