#include <normscope/nets/rnn/counter_machine.hpp>

#include <array>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <normscope/core/error.hpp>
#include <normscope/core/random.hpp>
#include <normscope/nets/rnn/theorems.hpp>

namespace normscope::nets::rnn {
namespace {

RC_GTEST_PROP(CounterMachine, BlindMachinesAreWeightedAutomata, (std::uint64_t seed)) {
  Random random(seed);
  const CounterMachine machine = draw_machine(true, random);
  RC_ASSERT(machine.counter_blind());
  RC_ASSERT(weighted_automaton(machine, 0).states == 2 * machine.states());
  RC_ASSERT(weighted_mistakes(machine, 10, random) == 0U);
}

TEST(CounterMachine, ZeroTestsAreNotBlind) {
  EXPECT_FALSE(clipped_difference().counter_blind());
  EXPECT_THROW(static_cast<void>(weighted_automaton(clipped_difference(), 0)), Error);
  EXPECT_THROW(CounterMachine(2, 1, 17), Error);
  CounterMachine machine(2, 2, 1);
  EXPECT_TRUE(machine.stateless());
  machine.set(0, 1, 1, std::array{Update{true, 1}});
  EXPECT_TRUE(machine.counter_blind());
  EXPECT_FALSE(machine.stateless());
}

TEST(CounterMachine, ClippedDifferenceStopsAtZero) {
  const CounterMachine machine = clipped_difference();
  for (std::size_t i = 0; i < 12; ++i) {
    for (std::size_t j = 0; j < 12; ++j) {
      const auto expected = static_cast<std::int64_t>(i > j ? i - j : 0);
      EXPECT_EQ(machine.run(blocks(std::array{i, j})).counters[0], expected);
    }
  }
}

TEST(CounterMachine, SpaceIsTheFormulas) {
  const std::array up{Update{true, 1}};
  const std::array down{Update{true, -1}};
  CounterMachine difference(2, 1, 1);
  difference.set(0, 0, 0, up);
  difference.set(1, 0, 0, down);
  CounterMachine both(2, 1, 2);
  both.set(0, 0, 0, std::array{Update{true, 1}, Update{}});
  both.set(1, 0, 0, std::array{Update{}, Update{true, 1}});
  const auto clipped = clipped_difference().space(12);
  for (std::size_t n = 0; n <= 12; ++n) {
    EXPECT_EQ(difference.space(12)[n], 2 * n + 1);
    EXPECT_EQ(clipped[n], n + 1);
    EXPECT_EQ(both.space(12)[n], (n + 1) * (n + 2) / 2);
  }
}

RC_GTEST_PROP(CounterMachine, SpaceIsThatOfEveryWord, (std::uint64_t seed)) {
  Random random(seed);
  const CounterMachine machine = draw_machine(random.below(2) == 0, random);
  const std::vector<std::size_t> counted = machine.space(7);
  std::set<std::pair<std::size_t, std::vector<std::int64_t>>> seen;
  for (Word word; word.size() <= 7; next_word(word, 2)) {
    const CounterMachine::Configuration now = machine.run(word);
    seen.emplace(now.state, now.counters);
    if (word == Word(word.size(), 1)) RC_ASSERT(counted[word.size()] == seen.size());
  }
  // Polynomially many: at most |Q| (2n + 1)^k.
  std::size_t bound = machine.states();
  for (std::size_t k = 0; k < machine.counters(); ++k) bound *= 15;
  RC_ASSERT(counted.back() <= bound);
}

TEST(SuffixAttack, WordsHaveTheSameWindows) {
  for (const std::size_t window : {1U, 2U, 3U, 5U}) {
    const auto [in, out] = suffix_attack(window);
    EXPECT_EQ(in.size(), 6 * (window + 10));
    EXPECT_TRUE(same_windows(in, out, window));
    EXPECT_FALSE(same_windows(in, WordView(out).first(out.size() - 1), window));
    EXPECT_NE(in, out);
  }
}

}  // namespace
}  // namespace normscope::nets::rnn
