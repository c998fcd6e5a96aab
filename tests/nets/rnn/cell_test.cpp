#include <normscope/nets/rnn/cell.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>

#include "nets/rnn/textbook.hpp"

namespace normscope::nets::rnn {
namespace {

using test::every_kind;

RC_GTEST_PROP(Cell, FollowsItsFormulas, (std::uint64_t seed)) {
  Random random(seed);
  for (const CellKind kind : every_kind) {
    const std::size_t symbols = 1 + random.below(4);
    const std::size_t width = 1 + random.below(8);
    Cell cell = test::random_cell(kind, symbols, width, 3.0, random);
    cell.linear_output = random.below(2) == 0;
    const test::LongVector parameters(cell.parameters.begin(), cell.parameters.end());
    State state = initial(cell);
    for (double& value : state.hidden) value = 2.0 * random.uniform() - 1.0;
    for (double& value : state.cell) value = 20.0 * random.uniform() - 10.0;
    test::LongState exact{{state.hidden.begin(), state.hidden.end()}, {state.cell.begin(), state.cell.end()}};
    const auto symbol = static_cast<std::uint8_t>(random.below(symbols));
    advance(cell, symbol, state);
    exact = test::step(cell, parameters, symbol, exact);
    // No term of a map is larger than 3, no c than 11.
    const auto terms = static_cast<double>(width + 2);
    const double bound = 0x1p-50 * (terms + 6.0) * std::max(3.0 * terms, 11.0);
    for (std::size_t k = 0; k < width; ++k) {
      RC_ASSERT(std::abs(static_cast<double>(state.hidden[k] - exact.hidden[k])) <= bound);
      if (kind == CellKind::lstm) {
        RC_ASSERT(std::abs(static_cast<double>(state.cell[k] - exact.cell[k])) <= bound);
      }
    }
  }
}

TEST(Cell, ActivationsAreWithinFourRoundings) {
  // An lstm of one unit without weights is its own biases: c = σ(b_i) tanh(b_g), h = σ(b_o) tanh(c).
  Cell cell = Cell::zeros(CellKind::lstm, 1, 1);
  for (double x = -720.0; x <= 720.0; x += std::abs(x) < 4.0 ? 0x1.1p-6 : 0x1.7p-2) {
    cell.bias(0)[0] = x;
    cell.bias(3)[0] = x;
    const Trace seen = trace(cell, Word{0});
    const double open = 1.0 / (1.0 + std::exp(-std::max(-708.0, x)));
    EXPECT_NEAR(seen.of("i")[0], open, 0x1p-50 * open) << x;
    EXPECT_NEAR(seen.of("g")[0], std::tanh(x), 0x1p-50) << x;
  }
}

TEST(Cell, TracesAreTheSteps) {
  Random random(5);
  for (const CellKind kind : every_kind) {
    const Cell cell = test::random_cell(kind, 3, 4, 1.0, random);
    const Word word = test::random_word(20, 3, random);
    const Trace seen = trace(cell, word);
    ASSERT_EQ(seen.steps, 20U);
    State state = initial(cell);
    for (std::size_t t = 0; t < word.size(); ++t) {
      advance(cell, word[t], state);
      for (std::size_t k = 0; k < 4; ++k) EXPECT_EQ(seen.of("h")[t * 4 + k], state.hidden[k]);
    }
    for (const std::string_view gate : gates(kind)) EXPECT_EQ(seen.of(gate).size(), 80U);
    EXPECT_EQ(seen.signals.size(), 1 + gates(kind).size() + (kind == CellKind::lstm ? 1 : 0));
  }
}

TEST(Cell, BoundedCellsStayBounded) {
  // h of a gru is a mean of the h before and a tanh: within [−1, 1] for ever, whatever the weights.
  Random random(6);
  for (const CellKind kind : {CellKind::gru, CellKind::elman_tanh}) {
    for (int run = 0; run < 20; ++run) {
      const Cell cell = test::random_cell(kind, 2, 5, 5.0, random);
      const Trace seen = trace(cell, test::random_word(500, 2, random));
      for (const double value : seen.of("h")) ASSERT_LE(std::abs(value), 1.0);
    }
  }
}

TEST(Cell, ReportsErrors) {
  EXPECT_THROW(static_cast<void>(cell_kind("rnn")), Error);
  EXPECT_EQ(cell_kind("gru"), CellKind::gru);
  Cell cell = Cell::zeros(CellKind::gru, 2, 3);
  EXPECT_NO_THROW(validate(cell));
  EXPECT_THROW(static_cast<void>(trace(cell, Word{2})), Error);
  cell.parameters.pop_back();
  EXPECT_THROW(validate(cell), Error);
  EXPECT_THROW(validate(Cell{}), Error);
}

}  // namespace
}  // namespace normscope::nets::rnn
