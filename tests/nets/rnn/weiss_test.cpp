#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <normscope/core/random.hpp>
#include <normscope/nets/rnn/counter_machine.hpp>
#include <normscope/nets/rnn/saturated.hpp>

// The arguments of [Weiss, Goldberg, Yahav 2018], section 3, in numbers.
namespace normscope::nets::rnn {
namespace {

/// An lstm of one unit with gates at ±`gate`: it counts up on a, down on b, resets on c and idles on d.
Cell counter(double gate) {
  Cell cell = Cell::zeros(CellKind::lstm, 4, 1);
  const std::array<double, 4> input{1.0, 1.0, -1.0, -1.0};
  const std::array<double, 4> forget{1.0, 1.0, -1.0, 1.0};
  const std::array<double, 4> candidate{1.0, -1.0, 1.0, 1.0};
  for (std::size_t letter = 0; letter < 4; ++letter) {
    cell.weight(0)[letter] = gate * input[letter];
    cell.weight(1)[letter] = gate * forget[letter];
    cell.weight(2)[letter] = gate;
    cell.weight(3)[letter] = gate * candidate[letter];
  }
  return cell;
}

double last(const Cell& cell, WordView word) { return trace(cell, word).of("c").back(); }

TEST(Weiss, AnLstmIncrementsDecrementsResetsAndIdles) {
  const Cell cell = counter(50.0);
  Random random(8);
  State state = initial(cell);
  double count = 0.0;
  for (int i = 0; i < 100000; ++i) {
    const auto letter = static_cast<std::uint8_t>(random.below(1000) == 0 ? 2 : random.below(3) % 2);
    const std::uint8_t shown = random.below(4) == 0 ? 3 : letter;
    advance(cell, shown, state);
    count = shown == 0 ? count + 1.0 : shown == 1 ? count - 1.0 : shown == 2 ? 0.0 : count;
    // A closed gate multiplies by e^-50.
    ASSERT_NEAR(state.cell[0], count, 1e-15 * (1.0 + std::abs(count)));
    ASSERT_EQ(std::abs(state.hidden[0]) < 0.5, count == 0.0);
  }
}

TEST(Weiss, LeakyGatesForget) {
  // f = σ(G) < 1: the count ends near e^G however long the word is.
  const Word word = blocks(std::array<std::size_t, 2>{1000, 1000});
  EXPECT_NEAR(last(counter(5.0), word), -148.04, 0.02);
  EXPECT_NEAR(last(counter(3.0), word), -19.99, 0.02);
  EXPECT_EQ(last(counter(50.0), blocks(std::array<std::size_t, 2>{20000, 20000})), 0.0);
}

/// h = tanh(h' ± step) after n ups and n downs.
double squashed_counter(double step, std::size_t n) {
  Cell cell = Cell::zeros(CellKind::elman_tanh, 2, 1);
  cell.weight(0)[0] = step;
  cell.weight(0)[1] = -step;
  cell.recurrent(0)[0] = 1.0;
  return trace(cell, blocks(std::array{n, n})).of("h").back();
}

TEST(Weiss, ATanhLosesCount) {
  EXPECT_NEAR(squashed_counter(0.01, 10), -0.0016, 1e-4);
  EXPECT_NEAR(squashed_counter(0.01, 50), -0.219, 1e-3);
  EXPECT_NEAR(squashed_counter(0.01, 100), -0.304, 1e-3);
  EXPECT_NEAR(squashed_counter(0.01, 500), -0.305, 1e-3);
}

TEST(Weiss, AGruHalvesUntilNothingIsLeft) {
  // z = 1/2, g = 0: h is halved at every step, until it underflows.
  Cell cell = Cell::zeros(CellKind::gru, 1, 1);
  State state = initial(cell);
  state.hidden[0] = 1.0;
  int steps = 0;
  while (state.hidden[0] != 0.0) {
    advance(cell, 0, state);
    ++steps;
  }
  EXPECT_EQ(steps, 1075);
}

TEST(Weiss, PalindromesExceedEveryCounterMachine) {
  // After x of x c x^R, 2^n words need different configurations; there are only |Q| (2n + 1)^k.
  EXPECT_EQ(palindrome_length(1, 0), 1U);
  EXPECT_EQ(palindrome_length(1, 1), 3U);
  for (const std::size_t states : {1U, 10U, 1000U}) {
    for (const std::size_t counters : {0U, 1U, 2U, 5U}) {
      const auto n = static_cast<double>(palindrome_length(states, counters));
      const auto room = [&](double length) {
        return std::log2(static_cast<double>(states)) +
               static_cast<double>(counters) * std::log2(2.0 * length + 1.0);
      };
      EXPECT_GT(n, room(n));
      EXPECT_LE(n - 1.0, room(n - 1.0));
    }
  }
}

}  // namespace
}  // namespace normscope::nets::rnn
