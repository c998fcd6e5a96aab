#include <normscope/nets/rnn/counting.hpp>

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

#include "nets/rnn/textbook.hpp"

namespace normscope::nets::rnn {
namespace {

/// An lstm whose unit 0 goes up by `up` on a and down by `down` on b, unit 1 up on b alone; no outputs to
/// speak of.
Network drifting(double up, double down) {
  Network network{.language = Language::anbn, .cell = Cell::zeros(CellKind::lstm, 3, 2)};
  for (std::size_t unit = 0; unit < 2; ++unit) {
    network.cell.bias(1)[unit] = 50.0;
    network.cell.bias(0)[unit] = 50.0;
  }
  network.cell.weight(3)[0] = std::atanh(up);
  network.cell.weight(3)[1] = -std::atanh(down);
  network.cell.weight(3)[3 + 1] = 3.0;
  network.output.assign(3 * 3, 0.0);
  return network;
}

TEST(Counting, FindsTheCounter) {
  const std::vector<UnitDrift> seen = drifts(drifting(0.9, 0.8), 50);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_TRUE(seen[0].counts);
  EXPECT_NEAR(seen[0].blocks[0].mean, 0.9, 1e-12);
  EXPECT_NEAR(seen[0].blocks[1].mean, -0.8, 1e-12);
  EXPECT_NEAR(seen[0].blocks[1].deviation, 0.0, 1e-12);
  EXPECT_FALSE(seen[1].counts);
  EXPECT_TRUE(drifts(drifting(-0.9, -0.8), 50)[0].counts);
}

TEST(Counting, WantsDriftsThatMatch) {
  EXPECT_FALSE(drifts(drifting(0.9, 0.4), 50)[0].counts);
  EXPECT_FALSE(drifts(drifting(0.09, 0.09), 50)[0].counts);
  EXPECT_FALSE(drifts(drifting(0.9, -0.9), 50)[0].counts);
  EXPECT_THROW(static_cast<void>(drifts(drifting(0.9, 0.9), 29)), Error);
}

TEST(Counting, NoBoundedUnitCounts) {
  Random random(9);
  for (int run = 0; run < 30; ++run) {
    Network network{.language = Language::anbn};
    network.cell = test::random_cell(CellKind::gru, 3, 5, 4.0, random);
    network.output.assign(3 * 6, 0.0);
    for (const UnitDrift& unit : drifts(network, least_drift_length)) EXPECT_FALSE(unit.counts);
  }
}

}  // namespace
}  // namespace normscope::nets::rnn
